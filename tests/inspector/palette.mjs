// Writes a screenshot with a palette of 256 colors, so that the pictures of the documentation stay small.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Reads the pixels of a PNG with 8 bits per channel: width, height, and red, green and blue of each. */
function read(png) {
  let at = 8;
  let [width, height, channels] = [0, 0, 3];
  const data = [];
  while (at < png.length) {
    const size = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + size);
    if (type === "IHDR") {
      [width, height] = [body.readUInt32BE(0), body.readUInt32BE(4)];
      if (body[8] !== 8 || ![2, 6].includes(body[9]) || body[12] !== 0) throw new Error("expected a PNG with 8 bits per channel, without a palette, not interlaced");
      channels = body[9] === 6 ? 4 : 3;
    } else if (type === "IDAT") data.push(body);
    at += size + 12;
  }
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const lines = Buffer.alloc(height * stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const left = x >= channels ? lines[y * stride + x - channels] : 0;
      const up = y > 0 ? lines[(y - 1) * stride + x] : 0;
      const corner = y > 0 && x >= channels ? lines[(y - 1) * stride + x - channels] : 0;
      lines[y * stride + x] = raw[y * (stride + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  const pixels = new Uint32Array(width * height);
  for (let index = 0; index < pixels.length; index += 1) pixels[index] = (lines[index * channels] << 16) | (lines[index * channels + 1] << 8) | lines[index * channels + 2];
  return { width, height, pixels };
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, body) {
  const name = Buffer.concat([Buffer.from(type, "latin1"), body]);
  const [size, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(body.length);
  check.writeUInt32BE(crc32(name));
  return Buffer.concat([size, name, check]);
}

/** Returns the same picture with 256 colors; others become the nearest of them. */
export function withPalette(png) {
  const { width, height, pixels } = read(png);
  const counts = new Map();
  for (const color of pixels) counts.set(color, (counts.get(color) ?? 0) + 1);
  const apart = (one, other) => ((one >> 16) - (other >> 16)) ** 2 + (((one >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((one & 255) - (other & 255)) ** 2;
  // Colors that occur most, then those that would change most, so that rare accents stay.
  const all = [...counts].sort((a, b) => b[1] - a[1]);
  const palette = all.slice(0, 32).map(([color]) => color);
  const loss = all.map(([color]) => Math.min(...palette.map((each) => apart(each, color))));
  while (palette.length < Math.min(256, all.length)) {
    const worst = all.reduce((best, [, count], index) => (loss[index] * Math.sqrt(count) > loss[best] * Math.sqrt(all[best][1]) ? index : best), 0);
    const color = all[worst][0];
    palette.push(color);
    all.forEach(([each], index) => { loss[index] = Math.min(loss[index], apart(each, color)); });
  }
  const places = new Map(palette.map((color, index) => [color, index]));
  const place = (color) => {
    let found = places.get(color);
    if (found === undefined) {
      found = palette.reduce((best, each, index) => (apart(each, color) < apart(palette[best], color) ? index : best), 0);
      places.set(color, found);
    }
    return found;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) rows[y * (width + 1) + 1 + x] = place(pixels[y * width + x]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", colors), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

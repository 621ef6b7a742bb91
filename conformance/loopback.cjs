// Keeps the suite's own servers on this machine: a listener that names no address gets 127.0.0.1.
// The synchronous bind is changed rather than `listen`, because the suite reads the address right after `listen(0)`.
const net = require("net");
const bind = net.Server.prototype._listen2;
net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  if (!address && typeof port === "number" && port >= 0) {
    address = "127.0.0.1";
    addressType = 4;
  }
  return bind.call(this, address, port, addressType, ...rest);
};

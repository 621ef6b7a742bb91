// Exchanges the one-time code of the link for a key. A browser that has a key with control, or used this code before, does not present it.
const USED = "bowline.code";
const KEY = "bowline.key";
const GRADE = "bowline.grade";
const code = location.hash.slice(1);
// The code leaves the address bar and the history before anything else happens.
history.replaceState(null, "", "/open");

/** @param {string} text */
function say(text) {
  const words = document.getElementById("words");
  if (words) words.textContent = text;
}

/**
 * Returns what a key allows, or `null` if it is not valid.
 * @param {string} key
 */
async function gradeOf(key) {
  const reply = await fetch("/api/query", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify({ query: "overview" }),
  });
  return reply.ok ? String((await reply.json()).grade) : null;
}

async function enter() {
  const key = localStorage.getItem(KEY);
  const grade = key ? await gradeOf(key) : null;
  // A code that is presented twice is revoked with its key; a link may give more than this browser has.
  if (grade !== null && (grade === "control" || code === "" || code === localStorage.getItem(USED))) return true;
  if (code === "") return false;
  const reply = await fetch("/api/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (!reply.ok) return grade !== null;
  const given = await reply.json();
  localStorage.setItem(USED, code);
  localStorage.setItem(KEY, String(given.key));
  localStorage.setItem(GRADE, String(given.grade));
  return true;
}

// Two tabs that open the same link take turns, so that the second finds the key of the first.
navigator.locks
  .request("bowline.enter", enter)
  .then((entered) => {
    if (entered) location.replace("/");
    else say("This link was used before or is too old. Run `bowline open` for a new one.");
  })
  .catch(() => say("bowline does not answer. Is it still running?"));

// Exchanges the one-time code of the link for a key. A browser that has a valid key does not present the code.
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

/** @param {string} key */
async function isValid(key) {
  const reply = await fetch("/api/query", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify({ query: "overview" }),
  });
  return reply.ok;
}

async function enter() {
  const key = localStorage.getItem(KEY);
  if (key && (await isValid(key))) return true;
  if (code === "") return false;
  const reply = await fetch("/api/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (!reply.ok) return false;
  const given = await reply.json();
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

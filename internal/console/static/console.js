// The console works without this file. It adds live updates, buttons that copy, and
// questions before an action that cannot be undone.
"use strict";

const interval = 2000;

// update fetches the fragment of an element again. An unchanged fragment is answered with
// 304, and the element is not touched.
async function update(element) {
  const headers = element.dataset.etag ? {"If-None-Match": element.dataset.etag} : {};
  const answer = await fetch(element.dataset.live, {headers, cache: "no-store", credentials: "same-origin"});
  if (answer.redirected) { // the session has ended
    location.reload();
    return;
  }
  if (answer.headers.get("Console-Live") === "end") delete element.dataset.live; // nothing changes any more
  if (answer.status !== 200 || !element.isConnected) return;
  const text = await answer.text();
  element.dataset.etag = answer.headers.get("ETag") || "";
  replace(element, text);
}

// replace replaces the content of an element. The focus and what a person has opened stay.
function replace(element, text) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...element.querySelectorAll("details[id][open]")].map((d) => d.id);
  const before = element.querySelector("[data-announce]")?.dataset.announce;
  element.innerHTML = text;
  const now = element.querySelector("[data-announce]")?.dataset.announce;
  if (now && now !== before) document.getElementById("announcer").textContent = now; // for screen readers
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({preventScroll: true});
  prepare(element);
}

// run updates all live elements for ever, while a person can see the page.
async function run() {
  const stale = document.getElementById("stale");
  for (;;) {
    await new Promise((done) => setTimeout(done, interval));
    if (document.visibilityState !== "visible") continue;
    const elements = [...document.querySelectorAll("[data-live]")];
    const results = await Promise.allSettled(elements.map(update));
    stale.hidden = !results.some((r) => r.status === "rejected");
  }
}

// prepare shows the controls inside an element that need a script.
function prepare(element) {
  for (const button of element.querySelectorAll("button[data-copy]")) button.hidden = !navigator.clipboard;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
  button.querySelector("span").textContent = button.dataset.copied;
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm || event.target.dataset.confirm;
  if (question && !confirm(question)) {
    event.preventDefault();
    return;
  }
  // A second click on the button must not send the form twice. The button is disabled
  // after the browser has read the form.
  if (event.target.method === "post") setTimeout(() => event.submitter && (event.submitter.disabled = true));
});

// A page that the browser shows again from its memory has its buttons enabled.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
});

// A form with an error: the focus goes to the first wrong field.
document.querySelector("[aria-invalid=true]")?.focus();
prepare(document);
if (document.querySelector("[data-live]")) run();

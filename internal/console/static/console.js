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
  if (answer.status === 304 || !element.isConnected) return;
  if (answer.status !== 200) throw new Error(`${element.dataset.live} answered ${answer.status}`); // run shows that the page is stale
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
    if (document.visibilityState !== "visible" || question.open) continue;
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

// A button with data-confirm asks before its form is sent. The dialog belongs to the page:
// it names the action on its button, and the focus starts on the other one and returns to
// where it was. Live elements are not replaced while it is open.
const question = document.getElementById("question");
const questionTitle = document.getElementById("question-title").textContent;
const agreed = new WeakSet();

// ask shows a question about the action of a button, and calls agree when the answer is yes.
function ask(button, title, content, agree) {
  const yes = document.getElementById("question-yes");
  document.getElementById("question-title").textContent = title;
  document.getElementById("question-text").replaceChildren(content);
  yes.textContent = button.textContent.trim();
  yes.className = button.classList.contains("danger") ? "danger" : "primary";
  question.returnValue = "";
  question.onclose = () => {
    if (question.returnValue === "yes") agree();
  };
  question.showModal();
}

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (button?.dataset.confirm && !agreed.has(button)) {
    event.preventDefault();
    const text = document.createElement("p");
    text.textContent = button.dataset.confirm;
    ask(button, questionTitle, text, () => {
      agreed.add(button);
      event.target.requestSubmit(button);
    });
    return;
  }
  agreed.delete(button);
  // A second click on the button must not send the form twice. The button is disabled
  // after the browser has read the form.
  if (event.target.getAttribute("method") === "post") setTimeout(() => event.submitter && (event.submitter.disabled = true));
});

// A page that the browser shows again from its memory has its buttons enabled.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
});

// A field that a person corrects is no longer marked as wrong. The server checks it again.
document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.getAttribute("aria-invalid") !== "true") return;
  field.removeAttribute("aria-invalid");
  field.closest(".field")?.classList.remove("field-wrong");
  document.getElementById(field.id + "-error")?.setAttribute("hidden", "");
});

// A form with an error: the focus goes to the first wrong field.
document.querySelector("[aria-invalid=true]")?.focus();
prepare(document);
if (document.querySelector("[data-live]")) run();

// The form of an invoice: what the server computes of it appears while a person writes.
let draftTimer;
let draftTurn = 0;

// showDraft puts a fragment beside the form, and its templates at their elements.
function showDraft(text) {
  const target = document.getElementById("draft");
  replace(target, text);
  for (const template of target.querySelectorAll("template[data-target]")) {
    document.getElementById(template.dataset.target)?.replaceChildren(template.content);
  }
}

function sendForm(form, address, submitter) {
  const body = new URLSearchParams(new FormData(form, submitter));
  return fetch(address, {method: "POST", body, cache: "no-store", credentials: "same-origin"});
}

// unsent shows or hides the notice that the server did not take the form. What the person
// has written stays, also when the session has ended.
function unsent(form, yes) {
  form.querySelector("[data-unsent]").hidden = !yes;
}

// draft shows what the server computes of the form. It returns whether the server took it.
async function draft(form) {
  const turn = ++draftTurn;
  const answer = await sendForm(form, form.dataset.draft).catch(() => null);
  const taken = answer?.status === 200 && !answer.redirected;
  if (turn !== draftTurn) return taken;
  unsent(form, !taken);
  if (taken) showDraft(await answer.text());
  return taken;
}

// An invoice is sent after the server has taken its form. When the session has ended, the
// page for signing in would replace what the person has written.
//
// A button with data-question asks once, when the server has found the form complete: the
// question, with buyer and total, comes with the draft. Without a question the form is
// only checked, so that its errors appear.
const sendable = new WeakSet();

const contents = (form) => new URLSearchParams(new FormData(form)).toString();

document.addEventListener("submit", async (event) => {
  const form = event.target, button = event.submitter;
  if (event.defaultPrevented || !form.dataset.draft || button?.hasAttribute("data-inplace") || sendable.delete(form)) return;
  event.preventDefault();
  let ok, sent;
  do { // again when a person has written meanwhile
    clearTimeout(draftTimer);
    sent = contents(form);
    ok = await draft(form);
  } while (ok && sent !== contents(form));
  if (button) button.disabled = false;
  if (!ok) {
    form.querySelector("[data-unsent]").scrollIntoView({block: "center"});
    return;
  }
  const send = (submitter) => {
    sendable.add(form);
    form.requestSubmit(submitter);
  };
  if (!button?.hasAttribute("data-question")) return send(button);
  const asked = document.getElementById("issue-question");
  if (!asked) return send(document.getElementById("issue-check"));
  button.focus({preventScroll: true}); // where the focus returns to
  ask(button, asked.dataset.title, asked.content.cloneNode(true), () => send(button));
});

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-draft]");
  if (!form) return;
  clearTimeout(draftTimer);
  draftTimer = setTimeout(() => draft(form), 300);
});

// After Back or a reload, the browser may have put back what a person wrote. The totals and
// the preview must be of these values.
addEventListener("pageshow", (event) => {
  const again = event.persisted || performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  const form = document.querySelector("form[data-draft]");
  if (again && form) draft(form);
});

// A button with data-inplace changes the form without another page.
document.addEventListener("submit", async (event) => {
  const button = event.submitter;
  if (!button?.hasAttribute("data-inplace")) return;
  event.preventDefault();
  const form = event.target, added = button.value === "add_line";
  try {
    const answer = await sendForm(form, form.getAttribute("action"), button).catch(() => null);
    const page = answer && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(form.id);
    if (!page) return unsent(form, true);
    form.innerHTML = page.innerHTML;
    const lines = form.querySelectorAll("fieldset");
    if (added) lines[lines.length - 1].querySelector("input").focus();
    else if (button.value !== "preview") form.querySelector("button[value=add_line]").focus();
    prepare(form);
  } finally {
    button.disabled = false;
  }
});

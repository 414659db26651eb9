// Small behaviours of the operator's pages. No page holds script of its own: the policy would refuse it.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  const text = source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  } catch {
    // Without a secure context there is no clipboard: select the text, so that the keys copy it.
    getSelection().selectAllChildren(source);
  }
});

document.addEventListener("DOMContentLoaded", () => {
  // A page that must not be asked for twice: a reload leads to the list instead of sending the form again.
  const page = document.querySelector("[data-replace-url]");
  if (page) history.replaceState(null, "", page.dataset.replaceUrl);
  // "Correct the errors below": in a long form the first of them is out of sight.
  document.querySelector("[aria-invalid=true]")?.focus();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-url]");
  if (!button) return;
  const answer = await fetch(button.dataset.copyUrl, { credentials: "same-origin" });
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(await answer.text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  } catch {
    location.assign(button.dataset.copyUrl);
  }
});

// The theme has things to click (filters, its menus) that are no buttons: without this the keyboard passes them by.
const CLICKED = "[x-on\\:click]:is(a:not([href]), span, div.cursor-pointer)";
const ICONS = {
  dock_to_right: "Sidebar", close: "Close", light_mode: "Light", dark_mode: "Dark", computer: "As the system",
  linked_services: "Overview", search: "Search", more_horiz: "More actions", more_vert: "More actions",
};

document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(CLICKED)) {
    place.tabIndex = 0;
    place.setAttribute("role", "button");
  }
  // Nor has all of it a name: an icon would be read out as the word that draws it, a field not at all.
  for (const place of document.querySelectorAll("a, button, [role=button]")) {
    const words = ICONS[place.textContent.trim()];
    if (words) place.setAttribute("aria-label", words);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden], [aria-label])")) {
    if (field.labels.length) continue;
    const label = field.closest(".field-row")?.querySelector("label")?.textContent.replace("*", "").trim();
    const words = [label, field.placeholder].filter(Boolean).join(": ");
    if (words) field.setAttribute("aria-label", words);
  }
});

document.addEventListener("keydown", (event) => {
  if (!["Enter", " "].includes(event.key) || !event.target.matches?.(CLICKED)) return;
  event.preventDefault();
  event.target.click();
});

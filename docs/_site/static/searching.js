/* Order and excerpts of search results. SEARCH_TEXTS has [anchor, text] of the sections of every page, by its name. */
"use strict";

/* Guides come first, then the reference, then notebooks and figures, then what is for developers. */
const PLACES = [
  [/^(decisions\/|changelog|contributing|tests|benchmarks|license|internals|architecture)/, -20],
  [/^(notebooks|measured)\//, -8],
  [/^(genindex|reference\/)/, 0],
  [/^(samplers|storage|distributed)\//, 12],
  [/^/, 16],
];

const searched = () => (new URLSearchParams(window.location.search).get("q") || "").toLowerCase();

/* A measure of how often a page has the words that are searched; all of them one after the other count most. */
const occurrences = (text, words) => {
  const count = (pattern) => (text.match(new RegExp(pattern, "g")) || []).length;
  const stems = words.map((word) => "\\b" + word.replace(/(ies|es|s|ing|ed)$/, "").replace(/[^\p{L}\p{N}_]/gu, "."));
  const apart = 4 * Math.log2(1 + Math.min(...stems.map(count)));
  const together = words.length > 1 ? count(stems.join("\\w*[\\W_]+")) : 0;
  return apart + (together ? 14 + 4 * Math.log2(together) : 0);
};

var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => {
    const words = searched().split(/[^\p{L}\p{N}_]+/u).filter((word) => word);
    if (kind === "object") {
      const name = title.toLowerCase();
      const whole = name === searched() || name.endsWith("." + searched());
      return score + (whole ? 40 : -10) - (name.startsWith("nodeflow.compat.") ? 5 : 0);
    }
    const place = PLACES.find(([pattern]) => pattern.test(page))[1];
    const text = (SEARCH_TEXTS[page] || []).map((section) => section[1]).join(" ").toLowerCase();
    return score + place + (words.length ? occurrences(text, words) : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

/* A page that is opened from a file may not fetch others: excerpts come from the texts. */
window.fetch = ((fetch) => (address, ...rest) => {
  const page = String(address).replace(document.documentElement.dataset.content_root, "").replace(/\.html$/, "");
  if (SEARCH_TEXTS[page] === undefined) return fetch(address, ...rest);
  const main = document.createElement("div");
  main.setAttribute("role", "main");
  const words = searched().split(/\W+/).filter((word) => word);
  const full = (text) => words.filter((word) => text.toLowerCase().includes(word)).length;
  const best = [...SEARCH_TEXTS[page]].sort((a, b) => full(b[1]) - full(a[1]));
  for (const [anchor, text] of best) {
    const section = main.appendChild(document.createElement("section"));
    section.id = anchor;
    section.textContent = text + " ";
  }
  return Promise.resolve(new Response(main.outerHTML));
})(window.fetch);

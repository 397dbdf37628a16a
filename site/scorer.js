// The weights of Sphinx's search, with one change: pages that explain come before lists that merely name the word.
var Scorer = {
  score: ([docname, _title, _anchor, _description, score]) =>
    docname.startsWith("docs/reference/") || docname === "CHANGELOG" ? score - 1 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
}

// A button in the header of each column sorts it: descending, ascending, original order. Empty cells stay at the end.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], first = [...body.rows];
  const text = (row, column) => row.cells[column].textContent.trim();
  const number = (words) => parseFloat(words.replace(/^<\s*/, "").replaceAll(",", ""));
  const sort = (column, order) => {
    heads.forEach((head, place) => head.setAttribute("aria-sort", place === column ? order : "none"));
    const isEmpty = (row) => ["", "-"].includes(text(row, column));
    const filled = first.filter((row) => !isEmpty(row)), empty = first.filter(isEmpty);
    const numeric = filled.filter((row) => !Number.isNaN(number(text(row, column)))).length > filled.length / 2;
    const value = (row) => number(text(row, column)) || 0;
    const compare = numeric ? (a, b) => value(a) - value(b) : (a, b) => text(a, column).localeCompare(text(b, column));
    filled.sort((a, b) => (order === "ascending" ? compare(a, b) : compare(b, a)));
    body.append(...(order === "none" ? first : [...filled, ...empty]));
  };
  if (first.length < 2) continue;
  heads.forEach((head, column) => {
    const words = head.classList.contains("text"), button = document.createElement("button");
    const orders = words ? ["ascending", "descending", "none"] : ["descending", "ascending", "none"];
    button.type = "button";
    button.setAttribute("aria-label", `sort by ${head.textContent}`);
    head.append(button);  // beside the text, so that it is not part of the header that is repeated on printed pages
    head.setAttribute("aria-sort", "none");
    head.addEventListener("click", () => sort(column, orders[(orders.indexOf(head.getAttribute("aria-sort")) + 1) % 3]));
  });
}

// Tables marked "printed" are unfolded for printing; longer ones are printed only if they are open.
const folded = () => document.querySelectorAll("details.printed:not([open])");
let unfolded = [];
addEventListener("beforeprint", () => { unfolded = [...folded()]; for (const one of unfolded) one.open = true; });
addEventListener("afterprint", () => { for (const one of unfolded) one.open = false; });

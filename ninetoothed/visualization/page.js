// The page: what is pointed at, which step is shown, which sizes are set; and what is drawn of it.

const MOST_WORK = 4e6; // More elements than these are not gone through at each change of a size.
const MOST_SEARCHED = 1e6; // Nor these while the pointer moves.
const MOST_NUMBERED = 400;

const free = MODEL.knobs.map(({ value }) => value);
const state = { program: 0, steps: new Map(), users: null, playing: null };
let arranged, grid, cards;

const $ = (selector, within = document) => within.querySelector(selector);

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

const tuple = (values) => `(${values.join(", ")}${values.length === 1 ? "," : ""})`;
const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** How a tensor's middle levels are selected in, with names or with numbers: `x[k]`. */
function selection(tensor, indices) {
  let next = 0;
  return tensor.depths.map((depth) => `[${indices.slice(next, (next += depth)).join(", ")}]`).join("");
}

const stepNames = (tensor) =>
  tensor.steps.length === 1 ? ["k"] : tensor.steps.map((_, place) => `k_${place}`);

/** A formula with names, or with numbers in their places. */
function formula(tensor, text, numbers) {
  const named = {
    v: MODEL.labels,
    p: tensor.grid.map((_, dim) => `program_${dim}`),
    s: stepNames(tensor),
    l: tensor.tile.map((_, dim) => `i_${dim}`),
  };
  return text.replace(/__([vpsl])(\d+)__/g, (_, kind, place) => (numbers ?? named)[kind][place]);
}

// Boards.

function buildGrid() {
  const canvas = $("#grid canvas");
  // Sizes of 1 take no part, so that a long row is not a thin column.
  const shape = withoutOnes(arranged.grid);
  grid = new Board(canvas, shape, { row: 16, limits: [290, 300, 30] });
  $("#grid .shape").textContent =
    `${tuple(arranged.grid)}: ${plural(arranged.programs, "program")}`;
  grid.background(style("--cell"));
  grid.keep();
  canvas.onmousemove = (event) => {
    const indices = grid.at(event.offsetX, event.offsetY);
    if (!indices || !arranged.programs) return;
    const program = ravel(indices, shape);
    if (program !== state.program) setProgram(program);
  };
}

function setProgram(program) {
  state.program = program;
  state.users = null;
  for (const { readout, tensor } of cards) describe(readout, tensor);
  draw();
}

function buildCards() {
  $("#tensors").replaceChildren();
  const total = arranged.tensors.reduce((sum, tensor) => sum + arranged.work(tensor), 0);
  cards = arranged.tensors.map((tensor, place) => {
    const canvas = element("canvas");
    const tileCanvas = element("canvas");
    const readout = element("p", { className: "readout" });
    const role = tensor.read && tensor.stored ? "read and stored" : tensor.stored ? "stored" : "read";
    const caption = element("figcaption");
    const made = element("article", { className: "card tensor" },
      element("h2", {}, element("b", { textContent: tensor.name }),
        element("span", { className: "shape", textContent: tuple(tensor.shape) }),
        element("span", { className: `badge ${tensor.stored ? "stored" : ""}`, textContent: role })),
      element("p", { className: "levels", textContent: levels(tensor) }),
      element("div", { className: "boards" },
        element("figure", {}, element("figcaption", { textContent: "the source" }), canvas),
        element("figure", {}, caption, tileCanvas)),
      readout, ...existence(tensor));
    made.style.setProperty("--color", `var(--tensor-${place % 8})`);
    made.dataset.tensor = tensor.name;
    $("#tensors").append(made);
    const survey = total <= MOST_WORK ? arranged.survey(tensor) : null;
    const card = { tensor, made, readout, caption, survey, color: style(`--tensor-${place % 8}`) };
    card.board = new Board(canvas, tensor.shape, { ...shown(tensor, survey), row: rowOf(tensor), limits: tensor.shape.length > 2 ? [400, 330, 22] : [270, 270, 22] });
    card.tile = new Board(tileCanvas, tensor.tile, { row: 16, limits: [130, 200, 26] });
    drawBase(card);
    canvas.onmousemove = (event) => point(card, card.board.at(event.offsetX, event.offsetY));
    canvas.onmouseleave = () => point(card, null);
    describe(readout, tensor);
    return card;
  });
  const isLarge = total > MOST_WORK && arranged.programs > 0;
  $("#grid .readout").textContent = isLarge
    ? `All programs together have ${plural(total, "element")}: more than are gone through here, so ` +
      "padding beyond the tensors and elements that two programs store are not looked for."
    : axes(arranged.grid);
}

/** Which way the dimensions of the grid run. */
function axes(shape) {
  const dims = [...shape.keys()].filter((dim) => shape[dim] !== 1);
  const last = dims.length - 1;
  return dims.map((dim, place) => `program_${dim} ${(last - place) % 2 ? "down" : "across"}`).join(", ");
}

/** When an element is none of the source's but padding. */
function existence(tensor) {
  if (!tensor.conditions.length) return [];
  const lines = tensor.conditions.map((text) => formula(tensor, text));
  return [element("details", {}, element("summary", { textContent: "an element exists where" }),
    element("p", { className: "readout", textContent: lines.join("\nand ") }))];
}

/** The indices that a board shows: the source's, and padding near it. */
function shown(tensor, survey) {
  if (!survey) return {};
  const beyond = (size) => Math.max(size, 8);
  return {
    low: survey.low.map((low, dim) => Math.max(low, -beyond(tensor.shape[dim]))),
    high: survey.high.map((high, dim) => Math.min(high, tensor.shape[dim] + beyond(tensor.shape[dim]))),
  };
}

/** A single dimension is wrapped where tiles begin, and not much longer down than across. */
function rowOf(tensor) {
  const width = Math.max(tensor.tile.at(-1) ?? 1, 1);
  const wanted = Math.max(WRAPPED / 2, Math.floor(Math.sqrt(count(tensor.shape))));
  if (width <= wanted) return Math.floor(wanted / width) * width;
  return Math.ceil(width / Math.ceil(width / (2 * wanted)));
}

function levels(tensor) {
  const steps = tensor.steps.length ? ` × ${tuple(tensor.steps)} steps` : "";
  const jagged = tensor.jagged ? "; all sequences are shown as long as the longest" : "";
  return `${tuple(tensor.grid)} programs${steps} × a tile of ${tuple(tensor.tile)}${jagged}`;
}

function drawBase({ board, tensor, survey, color }) {
  board.background(style("--cell"));
  const isLegible = board.scale >= 8 || (board.scale >= 4 && count(tensor.tile) >= 64);
  if (survey && !survey.overlaps && isLegible) drawCuts(board, tensor, survey);
  for (const shared of survey?.shared ?? []) board.fill(unravel(shared, tensor.shape), style("--shared"));
  board.keep();
}

/** Lines between tiles, where tiles do not overlap. */
function drawCuts(board, tensor, survey) {
  const { shape } = tensor;
  const strides = [1, shape.at(-1)];
  survey.owners.forEach((owner, place) => {
    const indices = unravel(place, shape);
    for (const axis of [0, 1]) {
      const dim = shape.length - 1 - axis;
      if (dim < 0 || indices[dim] === 0 || (board.row && indices[0] % board.row === 0)) continue;
      if (survey.owners[place - strides[axis]] !== owner) board.cut(indices, axis);
    }
  });
}

function draw() {
  grid.clear();
  if (arranged.programs) {
    for (const program of state.users?.programs ?? []) {
      grid.fill(unravel(program, grid.shape), state.users.color);
    }
    const indices = unravel(state.program, grid.shape);
    if (grid.scale < 8) grid.fill(indices, style("--program"));
    else if (state.users) grid.outline(indices, style("--program"), 3);
    else grid.fill(indices, style("--program"));
  }
  cards.forEach(drawCard);
  summarize();
}

function drawCard(card) {
  const { tensor, board, tile, made, color, survey } = card;
  board.clear();
  tile.clear();
  card.padding = 0;
  card.lit = 0;
  const step = stepOf(tensor);
  const steps = count(tensor.steps);
  const isNumbered = tile.scale >= 15 && count(tensor.shape) <= 10000 && count(tensor.tile) <= MOST_NUMBERED;
  if (arranged.programs && steps) {
    if (steps * count(tensor.tile) <= MOST_SEARCHED) drawWalk(card, step, steps);
    arranged.visit(tensor, state.program, step, (_, lanes, indices, exists) => {
      if (!exists) {
        card.padding++;
        board.hatch(indices, color);
        tile.hatch(lanes, color);
        return;
      }
      card.lit++;
      const number = ravel(indices, tensor.shape);
      const isShared = survey?.shared.has(number);
      board.fill(indices, isShared ? style("--shared") : color);
      if (isShared) board.outline(indices, color);
      tile.fill(lanes, isShared ? style("--shared") : color);
      if (isNumbered) tile.text(lanes, String(number), "#fff");
    });
  }
  const at = unravel(step, tensor.steps);
  card.caption.textContent = steps
    ? `tile ${tensor.name}${selection(tensor, at)}${isNumbered ? ", numbered as in the source" : ""}`
    : "no tile";
  Object.assign(made.dataset, { lit: card.lit, padding: card.padding, shared: survey?.shared.size ?? "unknown" });
}

/** The program's tiles at other steps, each place once. */
function drawWalk({ tensor, board, color }, step, steps) {
  const drawn = new Set();
  board.context.globalAlpha = 0.33;
  for (let other = 0; other < steps; other++) {
    if (other === step) continue;
    arranged.visit(tensor, state.program, other, (_, __, indices, exists) => {
      const spot = exists ? board.spot(indices) : null;
      if (!exists || drawn.has(spot)) return;
      drawn.add(spot);
      board.fill(indices, color);
    });
  }
  board.context.globalAlpha = 1;
}

function summarize() {
  const summary = $("#summary");
  if (!arranged.programs) {
    summary.replaceChildren(arranged.problems.length ? "No program runs." : "The grid is empty: no program runs.");
    summary.dataset.program = "";
    return;
  }
  const position = tuple(unravel(state.program, arranged.grid));
  summary.dataset.program = position;
  const steps = [...groups().values()].map(([tensor]) =>
    `${stepNames(tensor).join(", ")} = ${unravel(stepOf(tensor), tensor.steps).join(", ")}`);
  const touched = ({ tensor, lit, padding }) => [
    element("b", { textContent: tensor.name, style: `color: ${cards.find((c) => c.tensor === tensor).color}` }),
    `${selection(tensor, unravel(stepOf(tensor), tensor.steps))} (${plural(lit, "element")}` +
      `${padding ? `, ${padding} of the tile are padding` : ""})`,
  ];
  const list = (some) => some.flatMap((card, place) => [place ? ", " : "", ...touched(card)]);
  const read = cards.filter(({ tensor }) => tensor.read);
  const stored = cards.filter(({ tensor }) => tensor.stored);
  summary.replaceChildren(
    "Program ", element("b", { textContent: position }), steps.length ? `, at ${steps.join("; ")},` : "",
    ...(read.length ? [" reads ", ...list(read)] : []),
    ...(stored.length ? [read.length ? " and stores " : " stores ", ...list(stored)] : []), ".");
  const shared = cards.reduce((sum, { survey }) => sum + (survey?.shared.size ?? 0), 0);
  if (shared) summary.append(` ${plural(shared, "element")} ${shared === 1 ? "is" : "are"} stored by more than one program.`);
}

/** What is known of a tensor's elements, or of one of them. */
function describe(readout, tensor, place = null) {
  const lines = tensor.formulas.map((text, dim) => {
    const symbolic = formula(tensor, text);
    if (!place) return `index ${dim} = ${symbolic}`;
    const numeric = formula(tensor, text, place.numbers);
    return `index ${dim} = ${symbolic}${numeric === symbolic ? "" : `\n        = ${numeric}`} = ${place.indices[dim]}`;
  });
  readout.replaceChildren(...(place ? [element("em", { textContent: `${place.text}\n` })] : []), lines.join("\n"));
}

/** Shows which programs touch the element that is pointed at. */
function point(card, indices) {
  const { tensor, readout, color } = card;
  const key = indices ? `${tensor.name} ${indices}` : null;
  if (key === (state.users?.key ?? null)) return;
  state.users = null;
  describe(readout, tensor);
  if (indices && arranged.programs) {
    const number = ravel(indices, tensor.shape);
    const isSearched = arranged.work(tensor) <= MOST_SEARCHED;
    const { programs, first } = isSearched ? arranged.users(tensor, number) : { programs: [], first: null };
    state.users = { key, programs, color };
    const own = whereIn(tensor, number) ?? first;
    const subject = `${tensor.name}[${indices.join(", ")}]`;
    if (own) {
      const at = selection(tensor, unravel(own.step, tensor.steps));
      const numbers = { v: arranged.values, p: unravel(own.program, arranged.grid), s: unravel(own.step, tensor.steps), l: own.lanes };
      const shared = programs.length > 1 ? `; ${programs.length} programs have it` : "";
      const text = `${subject} is element ${tuple(own.lanes)} of program ${tuple(numbers.p)}'s ${tensor.name}${at}${shared}`;
      describe(readout, tensor, { text, numbers: { ...numbers, p: positionIn(tensor, numbers.p) }, indices });
    } else {
      readout.textContent = isSearched ? `${subject} is in no program's tile.` : `${subject} is not in this tile.`;
    }
  }
  draw();
}

/** A program's position by a tensor's own outermost dimensions, which may leave out sizes of 1. */
function positionIn(tensor, position) {
  const rest = position.filter((_, dim) => arranged.grid[dim] !== 1);
  return tensor.grid.map((size) => (size === 1 ? 0 : rest.shift()));
}

/** Where an element is in the tile that is shown, or at another step of its program. */
function whereIn(tensor, number) {
  let found = null;
  arranged.visit(tensor, state.program, stepOf(tensor), (_, lanes, indices, exists) => {
    if (exists && !found && ravel(indices, tensor.shape) === number) {
      found = { program: state.program, step: stepOf(tensor), lanes: [...lanes] };
    }
  });
  return found;
}

/** For new sizes. */
function rebuild() {
  arranged = new Arranged(MODEL, free);
  state.program = Math.min(state.program, Math.max(arranged.programs - 1, 0));
  state.users = null;
  $("#problems").textContent = arranged.problems.join("\n");
  $("#problems").hidden = !arranged.problems.length;
  showFollowing();
  buildGrid();
  buildCards();
  buildSteppers();
  draw();
}

document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const [first] = groups().keys();
  const steps = { ArrowLeft: -1, ArrowRight: 1 };
  const programs = { ArrowUp: -1, ArrowDown: 1 };
  if (event.key in steps && first !== undefined) move(first, steps[event.key]);
  else if (event.key in programs && arranged.programs) {
    setProgram((state.program + programs[event.key] + arranged.programs) % arranged.programs);
  } else if (event.key === " " && event.target.tagName !== "BUTTON" && event.target.tagName !== "SUMMARY") togglePlaying();
  else return;
  event.preventDefault();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);

for (const { title, text } of MODEL.functions) {
  $("#functions").append(element("details", { className: "card", open: true },
    element("summary", { textContent: title }), element("pre", { textContent: text })));
}
$("#notes").textContent = MODEL.notes.join(" ");
buildSizes();
rebuild();

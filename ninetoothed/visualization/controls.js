// What a person sets: the step of each walk, and the sizes.

// Steps: tensors of the same middle levels are walked together.

const group = (tensor) => tensor.steps.join("x");
const stepOf = (tensor) => Math.min(state.steps.get(group(tensor)) ?? 0, Math.max(count(tensor.steps) - 1, 0));

function groups() {
  const found = new Map();
  for (const tensor of arranged.tensors) {
    if (!tensor.steps.length) continue;
    if (!found.has(group(tensor))) found.set(group(tensor), []);
    found.get(group(tensor)).push(tensor);
  }
  return found;
}

function buildSteppers() {
  $("#steppers").replaceChildren(...[...groups()].map(([key, tensors]) => {
    const range = element("input", { type: "range", min: 0, max: Math.max(count(tensors[0].steps) - 1, 0) });
    range.setAttribute("aria-label", "step");
    range.oninput = () => setStep(key, Number(range.value));
    const button = (className, textContent, title, onclick) =>
      element("button", { className, textContent, title, onclick });
    const made = element("article", { className: "card stepper" },
      element("h2", {}, "Walk ", element("span", {
        className: "shape",
        textContent: tensors.map((t) => t.name + selection(t, stepNames(t))).join(", "),
      })),
      button("back", "‹", "one step back", () => move(key, -1)),
      button("on", "›", "one step on", () => move(key, 1)),
      range, button("play", "play", "walk through all steps", togglePlaying), element("output"));
    made.dataset.group = key;
    return made;
  }));
  showSteps();
}

function setStep(key, step) {
  state.steps.set(key, step);
  showSteps();
  draw();
}

function move(key, by) {
  const total = count(groups().get(key)[0].steps);
  if (total) setStep(key, (stepOf(groups().get(key)[0]) + by + total) % total);
}

function showSteps() {
  for (const [key, [tensor]] of groups()) {
    const made = $(`[data-group="${key}"]`);
    $("input", made).value = stepOf(tensor);
    const names = stepNames(tensor).join(", ");
    const at = unravel(stepOf(tensor), tensor.steps).join(", ");
    $("output", made).textContent = `${names} = ${at}: step ${stepOf(tensor) + 1} of ${count(tensor.steps)}`;
    $(".play", made).textContent = state.playing ? "stop" : "play";
  }
}

function togglePlaying() {
  if (state.playing) {
    clearInterval(state.playing);
    state.playing = null;
  } else if (groups().size) {
    state.playing = setInterval(() => [...groups().keys()].forEach((key) => move(key, 1)), 700);
  }
  showSteps();
}

// Sizes.

function buildSizes() {
  $("#sizes").hidden = !MODEL.knobs.length;
  for (const [place, knob] of MODEL.knobs.entries()) {
    const [value, position] = knob.powers
      ? [(exponent) => 2 ** exponent, (number) => Math.ceil(Math.log2(Math.max(number, 1)))]
      : [(number) => number, (number) => number];
    const range = element("input", { type: "range", id: `knob-${place}`, step: 1 });
    range.min = position(Math.min(knob.least, knob.value));
    range.max = position(knob.most);
    range.value = position(knob.value);
    range.dataset.knob = knob.label;
    const output = element("output", { textContent: knob.value });
    range.oninput = () => {
      free[place] = value(Number(range.value));
      output.textContent = free[place];
      rebuild();
    };
    const label = element("label", { textContent: knob.label, htmlFor: range.id });
    const following = element("small", { className: "following" });
    $("#sizes").append(element("div", { className: "knob" }, label, output, range, following));
  }
}

function showFollowing() {
  document.querySelectorAll(".following").forEach((small, place) => {
    small.textContent = MODEL.knobs[place].following
      .map(({ label, text }) => text === null ? `= ${label}`
        : `${label} = ${text} = ${arranged.values[MODEL.labels.indexOf(label)]}`)
      .join("\n");
  });
}

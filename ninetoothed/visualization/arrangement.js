// What an arrangement makes of known sizes. MODEL's functions are the compiler's own expressions;
// nothing here knows of the page.

const count = (shape) => shape.reduce((product, size) => product * Math.max(size, 0), 1);

/** The indices of the element at a place of a row-major shape. */
function unravel(place, shape) {
  const indices = new Array(shape.length);
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    indices[dim] = place % shape[dim];
    place = Math.floor(place / shape[dim]);
  }
  return indices;
}

const ravel = (indices, shape) =>
  indices.reduce((place, index, dim) => place * shape[dim] + index, 0);

const withoutOnes = (shape) => shape.filter((size) => size !== 1);
const same = (a, b) => a.length === b.length && a.every((size, dim) => size === b[dim]);

class Arranged {
  /** `free` has the values of those sizes and symbols that follow from nothing. */
  constructor(model, free) {
    this.values = model.values(free);
    const v = this.values;
    this.tensors = model.tensors.map((tensor) => ({
      ...tensor,
      shape: tensor.shape(v),
      grid: tensor.grid(v).map((size) => Math.max(size, 0)),
      steps: tensor.steps(v).map((size) => Math.max(size, 0)),
      tile: tensor.tile(v).map((size) => Math.max(size, 0)),
    }));
    this.problems = this.#problems(model);
    this.grid = this.tensors.reduce(
      (longest, { grid }) => (grid.length > longest.length ? grid : longest), []);
    this.programs = this.problems.length ? 0 : count(this.grid);
  }

  /** Why no program would run, as sentences. */
  #problems(model) {
    const v = this.values;
    const found = model.requirements
      .filter(({ holds }) => !holds(v))
      .map(({ text, found }) => `${text}; it is ${found(v)}.`);
    for (const { name, shape } of this.tensors) {
      if (shape.some((size) => size < 0)) found.push(`${name} has a negative size: ${shape}.`);
    }
    const [first, ...others] = this.tensors.map(({ grid }) => withoutOnes(grid));
    if (!others.every((grid) => same(grid, first))) {
      const shapes = this.tensors.map(({ name, grid }) => `${name} (${grid.join(", ")})`);
      found.push(`The outermost shapes must be the same, and are ${shapes.join(", ")}.`);
    }
    return found;
  }

  /** A program's position in a tensor's outermost level, which may leave out sizes of 1. */
  #position(tensor, program) {
    const indices = unravel(program, this.grid).filter((_, dim) => this.grid[dim] !== 1);
    let next = 0;
    return tensor.grid.map((size) => (size === 1 ? 0 : indices[next++]));
  }

  /** Visits a tile's elements: place in the tile, place in it by dimension, indices in the source,
   * whether the source has it. */
  visit(tensor, program, step, visitor) {
    const p = this.#position(tensor, program);
    const s = unravel(step, tensor.steps);
    const l = tensor.tile.map(() => 0);
    const total = count(tensor.tile);
    for (let place = 0; place < total; place++) {
      visitor(place, l, tensor.indices(this.values, p, s, l), tensor.exists(this.values, p, s, l));
      for (let dim = l.length - 1; dim >= 0 && ++l[dim] === tensor.tile[dim]; dim--) l[dim] = 0;
    }
  }

  /** For each element of a tile its number in the source, flattened, or -1 where it has none. */
  elements(tensor, program, step) {
    const numbers = new Array(count(tensor.tile));
    this.visit(tensor, program, step, (place, _, indices, exists) => {
      numbers[place] = exists ? ravel(indices, tensor.shape) : -1;
    });
    return numbers;
  }

  /** How many elements all programs have of a tensor, in all steps. */
  work(tensor) {
    return this.programs * count(tensor.steps) * count(tensor.tile);
  }

  /** Where tiles lie: for each element the tile that has it first (-1 for none), which ones several
   * programs store, the least and the greatest index by dimension, and whether tiles overlap. */
  survey(tensor) {
    const total = count(tensor.shape);
    const owners = new Int32Array(total).fill(-1);
    const writers = new Int32Array(total).fill(-1);
    const shared = new Set();
    const low = tensor.shape.map(() => 0);
    const high = [...tensor.shape];
    const steps = count(tensor.steps);
    let overlaps = false;
    for (let program = 0; program < this.programs; program++) {
      for (let step = 0; step < steps; step++) {
        let owner = null;
        this.visit(tensor, program, step, (_, __, indices, exists) => {
          if (!exists) {
            indices.forEach((index, dim) => {
              low[dim] = Math.min(low[dim], index);
              high[dim] = Math.max(high[dim], index + 1);
            });
            return;
          }
          const element = ravel(indices, tensor.shape);
          if (owners[element] < 0) owners[element] = program * steps + step;
          if (owner === null) owner = owners[element];
          overlaps = overlaps || owners[element] !== owner;
          if (tensor.stored) {
            if (writers[element] >= 0 && writers[element] !== program) shared.add(element);
            writers[element] = program;
          }
        });
      }
    }
    return { owners, shared, low, high, overlaps };
  }

  /** The programs whose tiles have an element, and one place of it: program, step, place by dimension. */
  users(tensor, element) {
    const programs = [];
    let first = null;
    const steps = count(tensor.steps);
    for (let program = 0; program < this.programs; program++) {
      let has = false;
      for (let step = 0; step < steps; step++) {
        this.visit(tensor, program, step, (_, lanes, indices, exists) => {
          if (!exists || ravel(indices, tensor.shape) !== element) return;
          has = true;
          first = first ?? { program, step, lanes: [...lanes] };
        });
      }
      if (has) programs.push(program);
    }
    return { programs, first };
  }
}

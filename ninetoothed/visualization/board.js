// Draws the elements of a shape on a canvas, and says which one is under the pointer.

const GAP = 0.6; // Between the matrices of a shape of more than two dimensions, in elements.
const WRAPPED = 64; // A longer row is drawn as several.
const MOST_PANELS = 4096;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Board {
  /**
   * @param low, high indices that are shown, by dimension: padding may lie beyond the shape.
   * @param row how many elements a row has where a single dimension is wrapped.
   * @param limits the greatest width, height and element, in pixels.
   */
  constructor(canvas, shape, { low, high, row = WRAPPED, limits }) {
    this.canvas = canvas;
    this.shape = shape;
    this.low = low ?? shape.map(() => 0);
    this.sizes = (high ?? shape).map((end, dim) => Math.max(end - this.low[dim], 0));
    const isLong = shape.length === 1 && this.sizes[0] > row;
    this.row = isLong ? row : 0;
    // Dimensions run across and down in turns, from the last to the first.
    this.steps = new Array(this.sizes.length);
    const extent = [1, 1];
    for (let turn = 0; turn < this.sizes.length; turn++) {
      const dim = this.sizes.length - 1 - turn;
      const axis = turn % 2;
      this.steps[dim] = turn < 2 ? 1 : extent[axis] + GAP * (turn >> 1);
      extent[axis] = this.steps[dim] * (this.sizes[dim] - 1) + (turn < 2 ? 1 : extent[axis]);
    }
    if (isLong) extent.splice(0, 2, row, Math.ceil(this.sizes[0] / row));
    this.isEmpty = count(this.sizes) === 0;
    if (this.isEmpty) extent.splice(0, 2, 1, 1);
    const [width, height, most] = limits;
    this.scale = Math.min(width / extent[0], height / extent[1], most);
    if (this.scale > 3) this.scale = Math.floor(this.scale);
    const ratio = window.devicePixelRatio || 1;
    const pixels = extent.map((elements) => Math.max(Math.ceil(elements * this.scale), 2) + 2);
    canvas.style.width = `${pixels[0]}px`;
    canvas.style.height = `${pixels[1]}px`;
    [canvas.width, canvas.height] = pixels.map((size) => Math.round(size * ratio));
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, ratio, ratio);
    this.base = null;
  }

  /** The top left of an element, in pixels. */
  place(indices) {
    const at = [0, 0];
    if (this.row) {
      const index = indices[0] - this.low[0];
      at[0] = index % this.row;
      at[1] = Math.floor(index / this.row);
    } else {
      const last = indices.length - 1;
      indices.forEach((index, dim) => {
        at[(last - dim) % 2] += (index - this.low[dim]) * this.steps[dim];
      });
    }
    return [at[0] * this.scale, at[1] * this.scale];
  }

  /** The indices of the element at a pixel of the canvas, or null. */
  at(x, y) {
    const rest = [(x - 1) / this.scale, (y - 1) / this.scale];
    if (this.isEmpty || rest[0] < 0 || rest[1] < 0) return null;
    let indices;
    if (this.row) {
      if (rest[0] >= this.row) return null;
      indices = [Math.floor(rest[1]) * this.row + Math.floor(rest[0]) + this.low[0]];
    } else {
      const last = this.sizes.length - 1;
      indices = this.steps.map((step, dim) => {
        const axis = (last - dim) % 2;
        const index = Math.min(Math.floor(rest[axis] / step), this.sizes[dim] - 1);
        rest[axis] -= index * step;
        return index + this.low[dim];
      });
      if (rest[0] >= 1 || rest[1] >= 1) return null;
    }
    return indices.every((index, dim) => index >= 0 && index < this.shape[dim]) ? indices : null;
  }

  shows(indices) {
    return indices.every((index, dim) =>
      index >= this.low[dim] && index < this.low[dim] + this.sizes[dim]);
  }

  /** What tells the places of elements apart; those in one pixel have one. */
  spot(indices) {
    const [x, y] = this.place(indices);
    return Math.floor(y) * this.canvas.width + Math.floor(x);
  }

  fill(indices, color) {
    const [x, y] = this.place(indices);
    const size = this.scale - (this.scale >= 5 ? 1 : 0);
    this.context.fillStyle = color;
    // Parts of a pixel would not add up to one.
    if (size < 1) this.context.fillRect(Math.floor(x), Math.floor(y), 1, 1);
    else this.context.fillRect(x, y, size, size);
  }

  outline(indices, color, width = 2) {
    const [x, y] = this.place(indices);
    this.context.strokeStyle = color;
    this.context.lineWidth = width;
    this.context.strokeRect(x + width / 2, y + width / 2, this.scale - width - 1, this.scale - width - 1);
  }

  hatch(indices, color) {
    if (!this.shows(indices)) return;
    const [x, y] = this.place(indices);
    this.context.fillStyle = this.pattern(color);
    this.context.fillRect(x, y, this.scale, this.scale);
  }

  pattern(color) {
    this.patterns = this.patterns ?? {};
    if (this.patterns[color]) return this.patterns[color];
    const tile = document.createElement("canvas");
    tile.width = tile.height = 5;
    const context = tile.getContext("2d");
    context.strokeStyle = color;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const shift of [-5, 0, 5]) {
      context.moveTo(shift - 1, 6);
      context.lineTo(shift + 6, -1);
    }
    context.stroke();
    this.patterns[color] = this.context.createPattern(tile, "repeat");
    return this.patterns[color];
  }

  text(indices, text, color) {
    const [x, y] = this.place(indices);
    this.context.fillStyle = color;
    this.context.font = `${Math.min(this.scale * 0.38, 11)}px system-ui, sans-serif`;
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.context.fillText(text, x + this.scale / 2, y + this.scale / 2);
  }

  /** A line between two neighbours that belong to different tiles; `axis` 0 is to the left. */
  cut(indices, axis) {
    const [x, y] = this.place(indices);
    this.context.fillStyle = style("--cut");
    if (axis === 0) this.context.fillRect(x - 1, y - 1, 1, this.scale + 1);
    else this.context.fillRect(x - 1, y - 1, this.scale + 1, 1);
  }

  /** All elements of the shape, in the colour of what is not touched. */
  background(color) {
    if (this.isEmpty) return;
    const outer = this.shape.slice(0, -2);
    if (this.scale >= 5 && count(this.shape) <= 65536) {
      for (let place = 0; place < count(this.shape); place++) this.fill(unravel(place, this.shape), color);
      return;
    }
    this.context.fillStyle = color;
    if (this.row) {
      for (let index = 0; index < this.shape[0]; index += this.row) {
        const [x, y] = this.place([index]);
        const length = Math.min(this.row, this.shape[0] - index);
        this.context.fillRect(x, y, length * this.scale, this.scale);
      }
      return;
    }
    const [down, across] = [this.shape.at(-2) ?? 1, this.shape.at(-1) ?? 1];
    for (let panel = 0; panel < Math.min(count(outer), MOST_PANELS); panel++) {
      const first = [...unravel(panel, outer), ...this.shape.slice(-2).map(() => 0)];
      const [x, y] = this.place(first);
      this.context.fillRect(x, y, across * this.scale, down * this.scale);
    }
  }

  /** Keeps what is drawn, for `clear` to go back to. */
  keep() {
    this.base = document.createElement("canvas");
    this.base.width = this.canvas.width;
    this.base.height = this.canvas.height;
    this.base.getContext("2d").drawImage(this.canvas, 0, 0);
  }

  clear() {
    this.context.save();
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.base) this.context.drawImage(this.base, 0, 0);
    this.context.restore();
  }
}

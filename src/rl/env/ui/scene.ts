/**
 * Makes the source text of ui modules. A ui module is an ES module that renders an env on a canvas in the browser. An
 * env's file, such as `CartPole.ts`, calls `scene` with a drawing, i.e. the code that renders this env, such as
 * `ui/cartPole.ts`. The module also contains the env's constants and the code that all ui modules share. All code is
 * plain JavaScript in strings, because browsers load it as files. A drawing gets its functions, such as `line`, in the
 * object `stage`; it may also use `turn` (a full circle), `short` and `clip`.
 *
 * A drawing defines its `width` and `height` in a unit of its choice, and is scaled to fit the canvas. It may also fill
 * the rest of the canvas, from `left` to `right` and `top` to `bottom`, which `stage` contains.
 */
import { palette } from "../internal/draw.ts"

const colours = {
  light: { ...palette, deep: "#efece3", stone: "#4a4e69", muted: "#77758a", act: "#d9820f" },
  dark: {
    paper: "#181a25",
    ink: "#ecebf3",
    faint: "#363b50",
    body: "#7c9fd3",
    pole: "#ff8b6a",
    joint: "#f7d96b",
    goal: "#41c5b3",
    deep: "#10121a",
    stone: "#4b5270",
    muted: "#9499b0",
    act: "#ffbf47",
  },
} satisfies Record<string, Record<string, string>>

/**
 * Returns the text of an ES module that renders an env. `drawing` defines `width`, `height` and `draw(stage, state,
 * action)`; `constants` are values of the env that it uses by name.
 */
export const scene = (id: string, drawing: string, constants: Readonly<Record<string, unknown>> = {}): string =>
  [
    `// Draws a moment of ${id}: init(canvas, options) once, then render(ui_state, parameters, state, action).`,
    "// Options: devicePixelRatio, and theme: light or dark, where it is not to follow the browser's.",
    `const palettes = ${JSON.stringify(colours, undefined, 2)}`,
    shared.trim(),
    [...Object.entries(constants).map(([name, value]) => `const ${name} = ${JSON.stringify(value)}`), drawing]
      .join("\n")
      .trim(),
    "",
  ].join("\n")

const shared = String.raw`
const turn = 2 * Math.PI

export function init(canvas, options) {
  return { canvas, context: canvas.getContext("2d"), options: options ?? {}, trail: [] }
}

export function episode_init(ui_state) {
  ui_state.trail = []
}

export function render(ui_state, parameters, state, action) {
  const { canvas } = ui_state
  // Before layout, a canvas has no size.
  if (!(canvas.width > 0 && canvas.height > 0)) return
  draw(stage(ui_state), state, typeof action === "number" ? [action] : Array.from(action ?? []))
}

function isDark(theme) {
  if (theme === "dark" || theme === "light") return theme === "dark"
  return typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches
}

function short(value, digits = 2) {
  const text = value.toFixed(digits)
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "\u2212")
}

function clip(value, low, high) {
  return Math.min(Math.max(value, low), high)
}

function stage({ canvas, context, options, trail }) {
  const dark = isDark(options.theme)
  const colours = dark ? palettes.dark : palettes.light
  const scale = Math.min(canvas.width / width, canvas.height / height)
  const left = (width - canvas.width / scale) / 2
  const top = (height - canvas.height / scale) / 2
  const right = width - left
  const bottom = height - top
  const pixel = (options.devicePixelRatio || 1) / scale
  context.setTransform(scale, 0, 0, scale, -left * scale, -top * scale)
  context.globalAlpha = 1
  context.lineCap = "round"
  context.lineJoin = "round"

  const faded = (alpha, paint) => {
    const before = context.globalAlpha
    context.globalAlpha = before * alpha
    paint()
    context.globalAlpha = before
  }
  const trace = (points, closed) => {
    context.beginPath()
    points.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)))
    if (closed) context.closePath()
  }
  const fill = (colour) => {
    context.fillStyle = colour
    context.fill()
  }
  const stroke = (colour, thick) => {
    context.strokeStyle = colour
    context.lineWidth = Math.max(thick, pixel)
    context.stroke()
  }
  const line = (points, colour, thick) => {
    trace(points, false)
    stroke(colour, thick)
  }
  const dashes = (points, colour, thick, dash) => {
    context.setLineDash([dash, dash])
    line(points, colour, thick)
    context.setLineDash([])
  }
  const shape = (points, colour) => {
    trace(points, true)
    fill(colour)
  }
  const disc = (x, y, radius, colour) => {
    context.beginPath()
    context.arc(x, y, radius, 0, turn)
    fill(colour)
  }
  /** Draws part of a circle from one angle to another; by default all of it. */
  const ring = (x, y, radius, colour, thick, from = 0, to = turn) => {
    context.beginPath()
    context.arc(x, y, radius, Math.min(from, to), Math.max(from, to))
    stroke(colour, thick)
  }
  const slab = (x, y, wide, high, radius, colour) => {
    context.beginPath()
    context.roundRect(x, y, wide, high, radius)
    fill(colour)
  }
  const shadow = (x, y, wide, high) => {
    faded(dark ? 0.45 : 0.13, () => {
      context.beginPath()
      context.ellipse(x, y, wide, high, 0, 0, turn)
      fill("#000")
    })
  }
  /** Fills the background with a gradient between two colours, which ends at the height "down". */
  const sky = (from, to, down) => {
    const shades = context.createLinearGradient(0, top, 0, down)
    shades.addColorStop(0, from)
    shades.addColorStop(1, to)
    context.fillStyle = shades
    context.fillRect(left, top, right - left, bottom - top)
  }
  const head = (x, y, angle, size, colour) => {
    const corner = (away, along) => [x + along * Math.cos(angle + away), y + along * Math.sin(angle + away)]
    shape([corner(0, size), corner(2.3, size * 0.85), corner(-2.3, size * 0.85)], colour)
  }
  /** Draws an arrow along a vector, unless it is zero. */
  const arrow = (x, y, dx, dy, colour, thick) => {
    const long = Math.hypot(dx, dy)
    if (long < 1) return
    const size = Math.min(thick * 1.9, long)
    const stem = Math.max(long - size, 0) / long
    line([[x, y], [x + dx * stem, y + dy * stem]], colour, thick)
    head(x + dx * stem, y + dy * stem, Math.atan2(dy, dx), size, colour)
  }
  /** Draws an arc with an arrow's head around a point; a positive angle "by" is clockwise. */
  const curl = (x, y, radius, from, by, colour, thick) => {
    if (Math.abs(by) < 0.02) return
    const to = from + by
    ring(x, y, radius, colour, thick, from, to)
    head(
      x + radius * Math.cos(to),
      y + radius * Math.sin(to),
      to + Math.sign(by) * (turn / 4 + 0.15),
      Math.min(thick * 1.9, radius * Math.abs(by)),
      colour,
    )
  }
  /** Writes text, unless it would be too small to read. */
  const words = (text, x, y, { size = 15, colour = colours.muted, align = "left" } = {}) => {
    if (size < 7 * pixel) return
    context.font = "500 " + size + "px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    context.textAlign = align
    context.textBaseline = "middle"
    context.fillStyle = colour
    context.fillText(text, x, y)
  }
  /** Writes text in the top left corner. */
  const caption = (text) => words(text, left + 18, top + 24)
  /** Draws a bar that shows a force as a share of the largest, from -1 to 1. */
  const dial = (x, y, wide, share) => {
    const part = clip(share, -1, 1)
    slab(x - wide / 2, y - 5, wide, 10, 5, colours.faint)
    if (part !== 0) slab(Math.min(x, x + (part * wide) / 2) - 5, y - 5, Math.abs(part * wide) / 2 + 10, 10, 5, colours.act)
    line([[x, y - 9], [x, y + 9]], colours.muted, 2)
    disc(x + (part * wide) / 2, y, 9, colours.paper)
    disc(x + (part * wide) / 2, y, 6.5, part === 0 ? colours.muted : colours.act)
  }
  /** Draws keys at their directions, each [right, down] from the middle; the chosen one is highlighted. */
  const keys = (x, y, moves, chosen, cell) => {
    const lit = (index) => index === chosen
    moves.forEach(([across, down], index) => {
      const [atX, atY] = [x + across * cell, y + down * cell]
      const side = cell * 0.86
      slab(atX - side / 2, atY - side / 2, side, side, cell * 0.22, lit(index) ? colours.act : colours.faint)
      const mark = lit(index) ? colours.paper : colours.muted
      if (across === 0 && down === 0) disc(atX, atY, cell * 0.11, mark)
      else head(atX, atY, Math.atan2(down, across), cell * 0.24, mark)
    })
  }
  /** Adds a place to the path, unless it is the last one there; returns the newest places, "most" of them at most. */
  const remember = (x, y, most) => {
    const last = trail.at(-1)
    if (last === undefined || last[0] !== x || last[1] !== y) trail.push([x, y])
    if (trail.length > most) trail.shift()
    return trail
  }
  const fading = (points, colour, thick, alpha = 0.5) => {
    for (let index = 1; index < points.length; index++) {
      faded((alpha * index) / points.length, () => line([points[index - 1], points[index]], colour, thick))
    }
  }
  context.fillStyle = colours.paper
  context.fillRect(left, top, right - left, bottom - top)
  return {
    context, colours, dark, left, top, right, bottom, faded, line, dashes, shape, disc, ring, slab, shadow, sky,
    arrow, curl, words, caption, dial, keys, remember, fading,
  }
}
`

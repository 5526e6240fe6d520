/**
 * Makes the text of a ui module, the ES module that renders an env on a canvas in the browser. It consists of the drawing's
 * values and of the source text of the functions that draw (see `shapes.ts`).
 */
import { dark, light } from "./palettes.ts"
import * as pageText from "./pageText.ts"
import type { EnvDrawing, StageShape } from "./shapes.ts"

/** The part of a canvas' context that shapes are painted with. */
interface CanvasContext {
  save(): void
  restore(): void
  transform(...matrix: StageShape["matrix"]): void
  beginPath(): void
  closePath(): void
  moveTo(x: number, y: number): void
  lineTo(x: number, y: number): void
  ellipse(x: number, y: number, wide: number, high: number, rotation: number, from: number, to: number): void
  roundRect(x: number, y: number, wide: number, high: number, radius: number): void
  fill(): void
  stroke(): void
  fillText(text: string, x: number, y: number): void
  globalAlpha: number
  fillStyle: string
  strokeStyle: string
  lineWidth: number
  font: string
  textAlign: string
  textBaseline: string
}

/** Paints a shape on a canvas. No line is thinner than `pixel`, and text that would be too small to read is left out. */
export const paint = (
  context: CanvasContext,
  { form, colour, width, opacity, matrix }: StageShape,
  pixel: number,
): void => {
  if (form.kind === "letter" || form.kind === "note") return
  context.save()
  context.transform(...matrix)
  context.globalAlpha = opacity
  context.fillStyle = colour
  context.beginPath()
  switch (form.kind) {
    case "path":
      form.points.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)))
      if (form.closed) context.closePath()
      break
    case "ellipse":
      context.ellipse(form.at[0], form.at[1], form.radii[0], form.radii[1], 0, 0, 2 * Math.PI)
      break
    case "rect":
      context.roundRect(form.at[0], form.at[1], form.size[0], form.size[1], form.radius)
      break
    case "words":
      if (form.size < 7 * pixel) break
      context.font = `500 ${form.size}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace`
      context.textAlign = form.align
      context.textBaseline = "middle"
      context.fillText(form.text, form.at[0], form.at[1])
  }
  if (width === undefined) context.fill()
  else {
    context.strokeStyle = colour
    context.lineWidth = Math.max(width, pixel / Math.hypot(matrix[0], matrix[1]))
    context.stroke()
  }
  context.restore()
}

const functions = String.raw`
function init(canvas, options) {
  return { canvas, context: canvas.getContext("2d"), options: options ?? {}, trail: [] }
}

function episode_init(ui_state) {
  ui_state.trail = []
}

function isDark(theme) {
  if (theme === "dark" || theme === "light") return theme === "dark"
  return typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches
}

function render({ canvas, context, options, trail }, parameters, state, action) {
  // Before the page's layout, a canvas has no size.
  if (!(canvas.width > 0 && canvas.height > 0)) return
  const { width, height } = drawing
  const scale = Math.min(canvas.width / width, canvas.height / height)
  const left = (width - canvas.width / scale) / 2
  const top = (height - canvas.height / scale) / 2
  const dark = isDark(options.theme)
  const frame = { left, top, right: width - left, bottom: height - top, colours: palettes[dark ? "dark" : "light"], dark, trail }
  const stage = stageOf(frame, brushOf(frame))
  context.setTransform(scale, 0, 0, scale, -left * scale, -top * scale)
  context.lineCap = "round"
  context.lineJoin = "round"
  context.fillStyle = frame.colours.paper
  context.fillRect(left, top, canvas.width / scale, canvas.height / scale)
  drawing.draw(stage, state, typeof action === "number" ? [action] : Array.from(action ?? []), { ...drawing, parameters: parameters ?? {} })
  for (const shape of stage.shapes) paint(context, shape, (options.devicePixelRatio || 1) / scale)
}
`

/** Returns a drawing as JavaScript: its functions as their source text, and its other values as JSON. */
const drawingText = ({ source, ...values }: Pick<EnvDrawing, "source">): string =>
  `{${Object.entries<unknown>(values).map(([key, value]) => `\n${JSON.stringify(key)}: ${source[key] ?? JSON.stringify(value)}`)}\n}`

/** Returns the text of the ui module that renders an env by this drawing. */
export const moduleOf = (id: string, drawing: Pick<EnvDrawing, "source">): string =>
  [
    `// Draws a moment of ${id}: init(canvas, options) once, then render(ui_state, parameters, state, action).`,
    "// Options: devicePixelRatio, and theme: light or dark, where it is not to follow the browser's.",
    `const palettes = ${JSON.stringify({ light, dark }, null, 2)}`,
    `const brushOf = ${pageText.brushOf}`,
    `const stageOf = ${pageText.stageOf}`,
    `const paint = ${pageText.paint}`,
    `const drawing = ${drawingText(drawing)}`,
    functions,
    "export { init, episode_init, render }\n",
  ]
    .join("\n")
    // A script is read in the charset of its page.
    .replace(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/**
 * Defines the shapes that drawings of envs consist of, and the brush that makes shapes. A drawing is a function that
 * gets an `EnvStage` and the state of an env; `svg.ts`, `text.ts` and `canvas.ts` turn the shapes into documents,
 * terminal text and pixels.
 *
 * Browsers get the functions of this file and of drawings as their source text, which `npm run page-text` writes into
 * `pageText.ts`. So these functions may use only their own variables, their arguments, and `Math`.
 */

export type StagePoint = readonly [x: number, y: number]

/** An affine map: (x, y) becomes (a x + c y + e, b x + d y + f). */
type Affine = readonly [a: number, b: number, c: number, d: number, e: number, f: number]

type Align = "left" | "center" | "right"

type Form =
  | { readonly kind: "path"; readonly points: ReadonlyArray<StagePoint>; readonly closed: boolean }
  | { readonly kind: "ellipse"; readonly at: StagePoint; readonly radii: StagePoint }
  | { readonly kind: "rect"; readonly at: StagePoint; readonly size: StagePoint; readonly radius: number }
  | {
      readonly kind: "words"
      readonly at: StagePoint
      readonly text: string
      readonly size: number
      readonly align: Align
    }
  /** A letter that terminals show along a line; other targets leave it out. */
  | { readonly kind: "letter"; readonly points: ReadonlyArray<StagePoint>; readonly letter: string }
  /** A line of text above the picture in a terminal. */
  | { readonly kind: "note"; readonly text: string }

/** A shape on the canvas. It is filled, or stroked if it has a width. */
export interface StageShape {
  readonly form: Form
  readonly colour: string
  readonly width: number | undefined
  readonly opacity: number
  readonly matrix: Affine
}

/** The colours of a theme. */
export interface ThemeColours {
  readonly paper: string
  readonly ink: string
  readonly faint: string
  readonly body: string
  readonly pole: string
  readonly joint: string
  readonly goal: string
  readonly deep: string
  readonly stone: string
  readonly muted: string
  readonly act: string
}

/** The canvas of a drawing: its edges in the drawing's unit, its colours, and the last places of a path. */
interface Frame {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
  readonly colours: ThemeColours
  readonly dark: boolean
  /** The places that `remember` has kept in this episode. */
  readonly trail: Array<StagePoint>
}

interface WordStyle {
  readonly size?: number
  readonly colour?: string
  readonly align?: Align
}

/** Returns functions that each add a shape to `shapes`. Coordinates are in the drawing's unit. */
export const brushOf = ({ colours, left, top }: Frame) => {
  const shapes: Array<StageShape> = []
  let opacity = 1
  let matrix: Affine = [1, 0, 0, 1, 0, 0]
  const add = (form: Form, colour: string, width?: number): void => {
    shapes.push({ form, colour, width, opacity, matrix })
  }
  const faded = (alpha: number, paint: () => void): void => {
    const before = opacity
    opacity = before * alpha
    paint()
    opacity = before
  }
  /** Paints in another system of coordinates, whose origin is at a place: turned clockwise by an angle, then scaled. */
  const within = (x: number, y: number, angle: number, scale: number, paint: () => void): void => {
    const before = matrix
    const [cos, sin] = [Math.cos(angle) * scale, Math.sin(angle) * scale]
    matrix = [cos, sin, -sin, cos, x, y]
    paint()
    matrix = before
  }
  const line = (colour: string, width: number, ...points: ReadonlyArray<StagePoint>): void =>
    add({ kind: "path", points, closed: false }, colour, width)
  const shape = (colour: string, ...points: ReadonlyArray<StagePoint>): void =>
    add({ kind: "path", points, closed: true }, colour)
  const disc = (x: number, y: number, radius: number, colour: string): void =>
    add({ kind: "ellipse", at: [x, y], radii: [radius, radius] }, colour)
  const ring = (x: number, y: number, radius: number, colour: string, width: number): void =>
    add({ kind: "ellipse", at: [x, y], radii: [radius, radius] }, colour, width)
  const oval = (x: number, y: number, wide: number, high: number, colour: string): void =>
    add({ kind: "ellipse", at: [x, y], radii: [wide, high] }, colour)
  const slab = (x: number, y: number, wide: number, high: number, radius: number, colour: string): void =>
    add({ kind: "rect", at: [x, y], size: [wide, high], radius }, colour)
  const border = (x: number, y: number, side: number, radius: number, colour: string, width: number): void =>
    add({ kind: "rect", at: [x, y], size: [side, side], radius }, colour, width)
  const words = (text: string, x: number, y: number, style: WordStyle = {}): void => {
    const { size = 15, colour = colours.muted, align = "left" } = style
    add({ kind: "words", at: [x, y], text, size, align }, colour)
  }
  const letter = (character: string, ...points: ReadonlyArray<StagePoint>): void =>
    add({ kind: "letter", points, letter: character }, colours.ink)
  /** Writes a row of text in the top left corner. */
  const caption = (text: string, row = 0, style: WordStyle = {}): void => {
    words(text, left + 18, top + 24 + 20 * row, style)
    add({ kind: "note", text }, colours.ink)
  }
  return { shapes, faded, within, line, shape, disc, ring, oval, slab, border, words, letter, caption }
}

type Brush = ReturnType<typeof brushOf>

/** Returns everything that a drawing can use: the brush, the frame, and tools that are made of the brush's shapes. */
// oxlint-disable-next-line max-lines-per-function -- the page gets its text, whole
export const stageOf = (frame: Frame, brush: Brush) => {
  const { colours, dark, left, top, right, trail } = frame
  const { faded, line, shape, disc, oval, slab } = brush
  const turn = 2 * Math.PI
  const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)
  const short = (value: number, digits = 2): string => {
    const text = value.toFixed(digits)
    return Number(text) === 0 ? (0).toFixed(digits) : text
  }
  const along = ([x, y]: StagePoint, [toX, toY]: StagePoint, share: number): StagePoint => [
    x + (toX - x) * share,
    y + (toY - y) * share,
  ]
  const dashes = (from: StagePoint, to: StagePoint, colour: string, width: number, dash: number): void => {
    const long = Math.hypot(to[0] - from[0], to[1] - from[1])
    for (let at = 0; at < long; at += 2 * dash) {
      line(colour, width, along(from, to, at / long), along(from, to, Math.min(at + dash, long) / long))
    }
  }
  const shadow = (x: number, y: number, wide: number, high: number): void =>
    faded(dark ? 0.45 : 0.13, () => oval(x, y, wide, high, "#000"))
  /** Fills the background down to a height with bands of colours, from one at the top to another. */
  const sky = (from: string, to: string, down: number): void => {
    const channel = (colour: string, at: number): number => Number.parseInt(colour.slice(at, at + 2), 16)
    const first = Math.floor(top)
    const bands = 24
    for (let band = 0; band < bands; band++) {
      const mixed = [1, 3, 5].map((at) =>
        Math.round(channel(from, at) + ((channel(to, at) - channel(from, at)) * band) / (bands - 1)),
      )
      const from_ = Math.round(first + ((down - first) * band) / bands)
      // Each band is under the next one by a little, so that no seam shows.
      const until = Math.round(first + ((down - first) * (band + 1)) / bands) + (band < bands - 1 ? 1 : 0)
      slab(left, from_, right - left, until - from_, 0, `rgb(${mixed.join(",")})`)
    }
  }
  /** Draws the head of an arrow with its centre at a place. */
  const head = (x: number, y: number, angle: number, size: number, colour: string): void => {
    const corner = (away: number, far: number): StagePoint => [
      x + far * Math.cos(angle + away),
      y + far * Math.sin(angle + away),
    ]
    shape(colour, corner(0, size), corner(2.3, size * 0.85), corner(-2.3, size * 0.85))
  }
  /** Draws an arrow along a vector, unless it is zero. */
  const arrow = (x: number, y: number, dx: number, dy: number, colour: string, width: number): void => {
    const long = Math.hypot(dx, dy)
    if (long < 0.01) return
    const size = Math.min(width * 1.9, long)
    const stem = Math.max(long - size, 0) / long
    line(colour, width, [x, y], [x + dx * stem, y + dy * stem])
    head(x + dx * stem, y + dy * stem, Math.atan2(dy, dx), size, colour)
  }
  /** Draws an arc with an arrow's head around a point; a positive angle `by` is clockwise. */
  const curl = (
    x: number,
    y: number,
    radius: number,
    from: number,
    by: number,
    colour: string,
    width: number,
  ): void => {
    if (Math.abs(by) < 0.02) return
    const at = (angle: number): StagePoint => [x + radius * Math.cos(angle), y + radius * Math.sin(angle)]
    line(colour, width, ...Array.from({ length: 25 }, (_, index) => at(from + (by * index) / 24)))
    const [endX, endY] = at(from + by)
    const size = Math.min(width * 1.9, radius * Math.abs(by))
    head(endX, endY, from + by + Math.sign(by) * (turn / 4 + 0.15), size, colour)
  }
  /** Draws a bar that shows a force as a share of the largest, from -1 to 1. */
  const dial = (x: number, y: number, wide: number, share: number): void => {
    const part = (clip(share, -1, 1) * wide) / 2
    slab(x - wide / 2, y - 5, wide, 10, 5, colours.faint)
    if (part !== 0) slab(Math.min(x, x + part) - 5, y - 5, Math.abs(part) + 10, 10, 5, colours.act)
    line(colours.muted, 2, [x, y - 9], [x, y + 9])
    disc(x + part, y, 9, colours.paper)
    disc(x + part, y, 6.5, part === 0 ? colours.muted : colours.act)
  }
  /** Draws keys at their directions, each [right, down] from the middle; the chosen one is highlighted. */
  const keys = (
    x: number,
    y: number,
    chosen: number | undefined,
    cell: number,
    ...moves: ReadonlyArray<StagePoint>
  ): void =>
    moves.forEach(([across, down], index) => {
      const lit = index === chosen
      const [atX, atY] = [x + across * cell, y + down * cell]
      const side = cell * 0.86
      slab(atX - side / 2, atY - side / 2, side, side, cell * 0.22, lit ? colours.act : colours.faint)
      const mark = lit ? colours.paper : colours.muted
      // A key without a direction is one to stay, in the middle, or one to fire, outside.
      if (across === 0 && down === 0) disc(atX, atY, cell * 0.11, mark)
      else if (across > 1) disc(atX, atY, cell * 0.24, mark)
      else head(atX, atY, Math.atan2(down, across), cell * 0.24, mark)
    })
  /** Adds a place to the path, unless it is the last one there; returns the newest places, `most` of them at most. */
  const remember = (x: number, y: number, most: number): ReadonlyArray<StagePoint> => {
    const last = trail.at(-1)
    if (last === undefined || last[0] !== x || last[1] !== y) trail.push([x, y])
    if (trail.length > most) trail.shift()
    return trail
  }
  const fading = (points: ReadonlyArray<StagePoint>, colour: string, width: number, alpha: number): void => {
    for (let index = 1; index < points.length; index++) {
      faded((alpha * index) / points.length, () => line(colour, width, points[index - 1], points[index]))
    }
  }
  const tools = { turn, clip, short, dashes, shadow, sky, arrow, curl, dial, keys, remember, fading }
  return { ...frame, ...brush, ...tools }
}

export type EnvStage = ReturnType<typeof stageOf>

/** How a drawing is shown in a terminal. */
export interface Terminal {
  readonly columns: number
  readonly rows: number
  /** The points of the drawing that are in the first and in the last row and column. */
  readonly from: StagePoint
  readonly to: StagePoint
  /** The letters for empty places, which repeat along a row. Default: a space. */
  readonly empty?: string
}

/**
 * How an env is drawn. All values are data or functions that use only their arguments and `Math`, because browsers get them
 * as text (`source`); `draw` also gets the drawing itself, with the values that an env has added to it.
 */
export interface EnvDrawing<Values = object, State = ReadonlyArray<number>> {
  /** The size of the picture, in a unit of the drawing's choice; it is scaled to fit a canvas. */
  readonly width: number
  readonly height: number
  readonly terminal: Terminal
  /** The source text of `draw` and of the values that are functions, by key: see `pageText.ts`. */
  readonly source: { readonly draw: string } & Readonly<Record<string, string>>
  /**
   * Draws a state and the action taken in it; `action` is empty if there is none. `parameters` are those of the call of
   * `render`; a document has none.
   */
  readonly draw: (
    stage: EnvStage,
    state: State,
    action: ReadonlyArray<number>,
    values: Values & {
      readonly width: number
      readonly height: number
      readonly parameters?: Readonly<Record<string, unknown>>
    },
  ) => void
}

/**
 * What a picture is made of, whatever it is written as: `svg.ts` gives it words, `png.ts` pixels. Lengths are in pixels
 * of a screen, y goes down, colours are `#rrggbb`.
 */
export interface Picture {
  readonly wide: number
  readonly high: number
  readonly paper: string
  /** The later lie on the earlier ones. */
  readonly shapes: ReadonlyArray<Shape>
}

export type Shape = Text | Line | Area | Dots

export interface Point {
  readonly x: number
  readonly y: number
}

/** Of one line, whose foot is at `y`. */
export interface Text extends Point {
  readonly _tag: "Text"
  readonly words: string
  readonly anchor: "start" | "middle" | "end"
  readonly size: number
  readonly colour: string
}

export interface Line {
  readonly _tag: "Line"
  readonly points: ReadonlyArray<Point>
  readonly width: number
  readonly colour: string
}

export interface Area {
  readonly _tag: "Area"
  readonly points: ReadonlyArray<Point>
  readonly colour: string
  readonly opacity: number
}

export interface Dots {
  readonly _tag: "Dots"
  readonly points: ReadonlyArray<Point>
  readonly radius: number
  readonly colour: string
}

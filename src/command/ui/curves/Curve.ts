/** Defines a learning curve, and the names of the charts' axes and measures. The server and the page use this file. */

/** The quantities that the x axis can show. */
export const axes = ["steps", "time", "episodes"] as const
export type Axis = (typeof axes)[number]

/** The quantities that the charts show over an axis: the returns of validations, or of training episodes. */
export const measures = ["validation", "train"] as const
export type Measure = (typeof measures)[number]

/** A learning curve as columns of equal length, with one value per point. */
export interface Curve {
  readonly steps: ReadonlyArray<number>
  /** The times in seconds since the run's start. */
  readonly time: ReadonlyArray<number>
  readonly episodes: ReadonlyArray<number>
  readonly mean: ReadonlyArray<number>
  /** The lowest return (`min`) and the highest return (`max`) of the episodes that each point combines. */
  readonly min: ReadonlyArray<number>
  readonly max: ReadonlyArray<number>
}

/** Rounds to seven significant digits; more digits would make the data larger without a visible difference. */
export const rounded = (value: number): number => Number(value.toPrecision(7))

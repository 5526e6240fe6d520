/**
 * Draws the shapes of a simulated world in perspective: capsules, cylinders and spheres, those behind first, with their
 * shadows on a floor of squares. The camera can follow one of them.
 *
 * A state has 11 numbers for each shape: its kind, size (three numbers), place (three), the direction of its length
 * (three), and its colour as one number.
 */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

/** Where the camera is. */
export interface Camera {
  /** The angle around the vertical, in radians: at 0 the camera looks along y, so that x goes to the right. */
  readonly around: number
  /** The angle above the horizontal, in radians. */
  readonly above: number
  /** How far it is from what it looks at. */
  readonly far: number
  /** The point that it looks at: [x, y, z]. What follows a shape along an axis is added to it. */
  readonly at: readonly [number, number, number]
  /** The number of the shape that it follows on the ground; -1 for none. */
  readonly follows: number
  /** The height of the floor; undefined if there is none. */
  readonly floor?: number
}

export const scene: EnvDrawing<Camera> = {
  width: 480,
  height: 400,
  terminal: { columns: 61, rows: 22, from: [10, 20], to: [470, 390] },
  source: { draw: pageText.scene },
  // oxlint-disable-next-line max-lines-per-function -- the page gets its text, whole
  draw: (stage, state, action, { around, above, far, at, follows, floor, width, height }) => {
    const { colours, dark, left, right, top, bottom, faded, line, oval, slab, sky, letter, clip } = stage
    type Place = readonly [number, number, number]
    const shapes = Array.from({ length: state.length / 11 }, (_, index) => state.slice(11 * index, 11 * index + 11))
    const followed = shapes[follows]
    const centre: Place = [at[0] + (followed?.[4] ?? 0), at[1] + (followed?.[5] ?? 0), at[2]]
    const [cosAround, sinAround] = [Math.cos(around), Math.sin(around)]
    const [cosAbove, sinAbove] = [Math.cos(above), Math.sin(above)]
    /** Returns where a point is for the camera: to the right, up, and how far in front of it. */
    const seen = ([x, y, z]: Place): Place => {
      const [dx, dy, dz] = [x - centre[0], y - centre[1], z - centre[2]]
      const across = dx * cosAround + dy * sinAround
      const away = dy * cosAround - dx * sinAround
      return [across, dz * cosAbove + away * sinAbove, far + away * cosAbove - dz * sinAbove]
    }
    const focus = 560
    const onScreen = ([across, up, away]: Place): StagePoint => [
      width / 2 + (focus * across) / away,
      height / 2 - (focus * up) / away,
    ]
    const nearest = 0.05 * far

    const horizon = clip(height / 2 - focus * Math.tan(above), top, bottom)
    const earth = dark ? "#1f2331" : "#e6e1d5"
    if (floor === undefined) slab(left, top, right - left, bottom - top, 0, colours.paper)
    else {
      slab(left, top, right - left, bottom - top, 0, earth)
      if (horizon > top) sky(dark ? "#12141f" : "#cfe0ef", dark ? "#262b40" : "#f7f4ec", horizon)
      // Squares of the floor: their sides are lines that go with the ground when the camera moves.
      const side = far / 5
      const reach = 24
      const [firstX, firstY] = [Math.round(centre[0] / side), Math.round(centre[1] / side)]
      const stroke = (from: Place, to: Place): void => {
        const ends = [seen(from), seen(to)]
        if (ends.every(([, , away]) => away < nearest)) return
        // The part behind the camera is cut off.
        const [near, other] = ends[0][2] < ends[1][2] ? ends : [ends[1], ends[0]]
        const share = near[2] < nearest ? (nearest - near[2]) / (other[2] - near[2]) : 0
        const cut: Place = [
          near[0] + share * (other[0] - near[0]),
          near[1] + share * (other[1] - near[1]),
          near[2] + share * (other[2] - near[2]),
        ]
        line(colours.faint, 1.2, onScreen(cut), onScreen(other))
      }
      for (let step = -reach; step <= reach; step++) {
        const [x, y] = [(firstX + step) * side, (firstY + step) * side]
        stroke([x, (firstY - reach) * side, floor], [x, (firstY + reach) * side, floor])
        stroke([(firstX - reach) * side, y, floor], [(firstX + reach) * side, y, floor])
      }
    }

    const shaded = (colour: number, light: number): string => {
      const channel = (shift: number): number => clip(Math.round(((colour >> shift) & 255) * light), 0, 255)
      return `rgb(${channel(16)},${channel(8)},${channel(0)})`
    }
    const parts = shapes.map(([kind, radius, half, , x, y, z, axisX, axisY, axisZ, colour]) => {
      // A capsule (3) or a cylinder (5) has a length; a sphere (2) has none.
      const length = kind === 2 ? 0 : half
      const ends: readonly [Place, Place] = [
        [x - length * axisX, y - length * axisY, z - length * axisZ],
        [x + length * axisX, y + length * axisY, z + length * axisZ],
      ]
      return { radius, colour, ends, isFlat: kind === 5 && half < radius / 2, away: seen([x, y, z])[2] }
    })
    if (floor !== undefined) {
      for (const { radius, ends } of parts) {
        const shadows = ends.map(([x, y]) => seen([x, y, floor]))
        if (shadows.some(([, , away]) => away < nearest)) continue
        const wide = (2 * radius * focus) / shadows[0][2]
        faded(dark ? 0.4 : 0.13, () => line("#000", wide * 0.8, onScreen(shadows[0]), onScreen(shadows[1])))
      }
    }
    for (const { radius, colour, ends, isFlat } of parts.toSorted((one, other) => other.away - one.away)) {
      const [from, to] = ends.map(seen)
      if (from[2] < nearest || to[2] < nearest) continue
      const wide = (4 * radius * focus) / (from[2] + to[2])
      const [start, end] = [onScreen(from), onScreen(to)]
      letter("•", start, end)
      if (isFlat) {
        oval(start[0], start[1], wide / 2, (wide / 2) * Math.max(sinAbove, 0.05), shaded(colour, dark ? 0.85 : 1))
        continue
      }
      line(shaded(colour, dark ? 0.55 : 0.7), wide, start, end)
      line(shaded(colour, dark ? 0.85 : 1), wide * 0.78, start, end)
      const lit = ([x, y]: StagePoint): StagePoint => [x - wide * 0.12, y - wide * 0.2]
      faded(0.35, () => line("#fff", wide * 0.18, lit(start), lit(end)))
    }
    // A bar for each number of the action.
    const step = Math.min(26, (width - 40) / Math.max(action.length, 1))
    action.forEach((value, index) => {
      const x = width / 2 + (index - (action.length - 1) / 2) * step
      const high = clip(value, -1, 1) * 18
      slab(x - step * 0.32, bottom - 46, step * 0.64, 36, 3, colours.faint)
      if (high !== 0)
        slab(x - step * 0.32, bottom - 28 - Math.max(high, 0), step * 0.64, Math.abs(high), 2, colours.act)
    })
  },
}

/**
 * Draws the shapes of a simulated world in perspective: capsules, cylinders and spheres, those behind first, with their
 * shadows on a floor of squares. The camera can follow one of them. Arrows show contact forces, and the pull of a person.
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
  /** How large something is in the picture that is as large as its distance from the camera. */
  readonly focus: number
  /** Whether pictures show contact forces. A page shows them if its own switch is on. */
  readonly forces: boolean
}

/** What is drawn of a world. */
interface Scene {
  /**
   * 11 numbers for each shape: its kind, size (three numbers), place (three), the direction of its length (three), and its
   * colour as one number.
   */
  readonly scene: ArrayLike<number>
  /** Six numbers for each force: where it acts, and the force as a multiple of the weight of all bodies. */
  readonly forces?: ArrayLike<number>
  /** Where a person holds a body, and to where it is pulled: two places. */
  readonly pull?: ArrayLike<number>
  /** The terms of the last reward. */
  readonly terms?: Readonly<Record<string, number>>
}

export const scene: EnvDrawing<Camera, Scene> = {
  width: 480,
  height: 400,
  terminal: { columns: 61, rows: 22, from: [10, 20], to: [470, 390] },
  source: { draw: pageText.scene },
  // oxlint-disable-next-line max-lines-per-function -- the page gets its text, whole
  draw: (stage, state, action, { around, above, far, at, follows, floor, focus, width, height, ...more }) => {
    const { colours, dark, left, right, top, bottom, faded, line, oval, slab, sky, letter, clip, arrow, disc } = stage
    const { caption, short } = stage
    type Place = readonly [number, number, number]
    const rowsOf = (values: ArrayLike<number>, size: number) => {
      const list = Array.from(values)
      return Array.from({ length: list.length / size }, (_, index) => list.slice(size * index, size * index + size))
    }
    const shapes = rowsOf(state.scene, 11)
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
    const onScreen = ([across, up, away]: Place): StagePoint => [
      width / 2 + (focus * across) / away,
      height / 2 - (focus * up) / away,
    ]
    const nearest = 0.05 * far

    const horizon = clip(height / 2 - focus * Math.tan(above), top, bottom)
    const earth = dark ? "#1f2331" : "#e6e1d5"
    const lines = dark ? "#41475f" : "#bdb6a6"
    if (floor === undefined) slab(left, top, right - left, bottom - top, 0, colours.paper)
    else {
      slab(left, top, right - left, bottom - top, 0, earth)
      if (horizon > top) sky(dark ? "#12141f" : "#cfe0ef", dark ? "#262b40" : "#f7f4ec", horizon)
      // Squares of the floor: their sides are lines that go with the ground when the camera moves, and end in the haze.
      const side = far / 5
      const reach = 14
      const [firstX, firstY] = [Math.round(centre[0] / side), Math.round(centre[1] / side)]
      const mix = (from: Place, to: Place, share: number): Place => [
        from[0] + share * (to[0] - from[0]),
        from[1] + share * (to[1] - from[1]),
        from[2] + share * (to[2] - from[2]),
      ]
      const stroke = (from: Place, to: Place, alpha: number): void => {
        const ends = [seen(from), seen(to)]
        if (ends.every(([, , away]) => away < nearest)) return
        // The part behind the camera is cut off.
        const [near, other] = ends[0][2] < ends[1][2] ? ends : [ends[1], ends[0]]
        const cut = mix(near, other, near[2] < nearest ? (nearest - near[2]) / (other[2] - near[2]) : 0)
        const [start, end] = [onScreen(cut), onScreen(other)]
        const isBeside = (axis: 0 | 1, low: number, high: number): boolean =>
          Math.max(start[axis], end[axis]) < low || Math.min(start[axis], end[axis]) > high
        if (!isBeside(0, left, right) && !isBeside(1, top, bottom)) faded(alpha, () => line(lines, 1.2, start, end))
      }
      const grid = (from: Place, to: Place, step: number): void => {
        const clear = 1 - Math.abs(step) / (reach + 1)
        const [first, second] = [mix(from, to, 0.2), mix(from, to, 0.8)]
        stroke(from, first, 0.3 * clear)
        stroke(first, second, clear)
        stroke(second, to, 0.3 * clear)
      }
      for (let step = -reach; step <= reach; step++) {
        const [x, y] = [(firstX + step) * side, (firstY + step) * side]
        grid([x, (firstY - reach) * side, floor], [x, (firstY + reach) * side, floor], step)
        grid([(firstX - reach) * side, y, floor], [(firstX + reach) * side, y, floor], step)
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
        // Opaque, so that where two shadows meet it is not darker.
        line(dark ? "#141722" : "#c9c3b4", wide * 0.8, onScreen(shadows[0]), onScreen(shadows[1]))
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
    const isInFront = (...places: ReadonlyArray<Place>): boolean => places.every(([, , away]) => away >= nearest)
    // A document has no switch, and no page around it that has the terms of the reward.
    if ((more.parameters?.["forces"] ?? more.forces) === true) {
      for (const [x, y, z, ...force] of rowsOf(state.forces ?? [], 6)) {
        const size = Math.hypot(...force)
        const long = (0.12 * far * Math.min(size, 4)) / size
        // The place is anywhere along the force; an arrow from the floor begins there.
        const sunk = floor === undefined || force[2] <= 0 ? 0 : (z - floor) / force[2]
        const back = Math.abs(sunk) * size < 0.15 * far ? sunk : 0
        const alongForce = (way: number): Place => [x + way * force[0], y + way * force[1], z + way * force[2]]
        const [from, to] = [seen(alongForce(-back)), seen(alongForce(long - back))]
        if (!isInFront(from, to)) continue
        const [start, end] = [onScreen(from), onScreen(to)]
        arrow(start[0], start[1], end[0] - start[0], end[1] - start[1], dark ? "#6ee7d6" : "#0f766e", 3.5)
      }
    }
    if (more.parameters === undefined) {
      Object.entries(state.terms ?? {}).forEach(([name, value], row) => caption(`${name} ${short(value)}`, row))
    }
    for (const [x, y, z, ...to] of rowsOf(state.pull ?? [], 6)) {
      const ends = [seen([x, y, z]), seen([to[0], to[1], to[2]])]
      if (!isInFront(...ends)) continue
      const [start, end] = ends.map(onScreen)
      line(colours.act, 3, start, end)
      disc(start[0], start[1], 5, colours.act)
      disc(end[0], end[1], 7, colours.act)
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

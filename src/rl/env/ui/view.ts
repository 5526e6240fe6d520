/**
 * Says where the camera of a scene sees a place, and which place is at a point of the picture. `scene.ts` draws by the same
 * rules; it has them again because browsers get its function as text, without imports.
 */
import type { Camera } from "./scene.ts"

export type Place = readonly [x: number, y: number, z: number]

export interface SceneView {
  /** Returns the point of the picture at which a place is seen, and how far in front of the camera it is. */
  readonly seen: (place: Place) => readonly [x: number, y: number, away: number]
  /** Returns the place that is seen at a point of the picture, this far in front of the camera. */
  readonly placeAt: (x: number, y: number, away: number) => Place
  /** The directions in the world that are to the right and up in the picture. */
  readonly right: Place
  readonly up: Place
}

/** Returns what a camera sees in a picture of this size, while the shape that it follows is at `followed`. */
export const viewOf = (
  { around, above, far, at, focus }: Camera,
  { width, height }: { readonly width: number; readonly height: number },
  [x, y]: readonly [x: number, y: number],
): SceneView => {
  const [cosAround, sinAround] = [Math.cos(around), Math.sin(around)]
  const [cosAbove, sinAbove] = [Math.cos(above), Math.sin(above)]
  const right: Place = [cosAround, sinAround, 0]
  const up: Place = [-sinAround * sinAbove, cosAround * sinAbove, cosAbove]
  const forward: Place = [-sinAround * cosAbove, cosAround * cosAbove, -sinAbove]
  const eye: Place = [at[0] + x - far * forward[0], at[1] + y - far * forward[1], at[2] - far * forward[2]]
  return {
    right,
    up,
    seen: (place) => {
      const way: Place = [place[0] - eye[0], place[1] - eye[1], place[2] - eye[2]]
      const away = along(way, forward)
      return [width / 2 + (focus * along(way, right)) / away, height / 2 - (focus * along(way, up)) / away, away]
    },
    placeAt: (left, top, away) => {
      const [across, high] = [(away * (left - width / 2)) / focus, (away * (height / 2 - top)) / focus]
      const axis = (index: 0 | 1 | 2): number =>
        eye[index] + away * forward[index] + across * right[index] + high * up[index]
      return [axis(0), axis(1), axis(2)]
    },
  }
}

const along = (one: Place, other: Place): number => one[0] * other[0] + one[1] * other[1] + one[2] * other[2]

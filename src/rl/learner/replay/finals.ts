/** Stores the final observations of episodes for a replay buffer, which has no room for them between its steps. */
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { misfit, namedVector } from "../learnerState.ts"

/**
 * Makes a store of final observations, each under the place (index in the buffer) of its episode's last step. It grows
 * when it is full.
 */
export const makeFinals = (width: number) => {
  /** For each place, its slot: the index of its observation in `contents`. `free` has slots that can be used again. */
  const slots = new Map<number, number>()
  const free: Array<number> = []
  let contents = new Float32Array(16 * width)
  return {
    keep: (place: number, from: Float32Array, env: number): void => {
      const slot = free.pop() ?? slots.size
      if ((slot + 1) * width > contents.length) {
        const larger = new Float32Array(contents.length * 2)
        larger.set(contents)
        contents = larger
      }
      for (let at = 0; at < width; at++) contents[slot * width + at] = from[env * width + at]
      slots.set(place, slot)
    },
    forget: (place: number): void => {
      const slot = slots.get(place)
      if (slot === undefined) return
      slots.delete(place)
      free.push(slot)
    },
    read: (place: number, into: Float32Array, row: number): void => {
      const slot = slots.get(place) ?? 0
      for (let at = 0; at < width; at++) into[row * width + at] = contents[slot * width + at]
    },
    state: (): NamedArrays => {
      const places = Int32Array.from(slots.keys())
      const kept = new Float32Array(places.length * width)
      for (let index = 0; index < places.length; index++) {
        const slot = slots.get(places[index]) ?? 0
        kept.set(contents.subarray(slot * width, (slot + 1) * width), index * width)
      }
      return { finalPlaces: namedVector(places), finals: { shape: [places.length, width], data: kept } }
    },
    restore: (arrays: NamedArrays): void => {
      const places = arrays.finalPlaces?.data
      const kept = arrays.finals?.data
      if (!(places instanceof Int32Array) || !(kept instanceof Float32Array) || kept.length !== places.length * width) {
        throw misfit(`"finalPlaces" and "finals" have lengths that do not match`)
      }
      slots.clear()
      free.length = 0
      contents = new Float32Array(Math.max(16 * width, kept.length))
      contents.set(kept)
      for (let index = 0; index < places.length; index++) slots.set(places[index], index)
    },
  }
}

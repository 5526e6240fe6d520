import * as Env from "../../../src/rl/env/Env.ts"
import { box, dict, discrete } from "../../../src/rl/env/Space.ts"

const moves = [
  [0, -1],
  [0, 1],
  [-1, 0],
  [1, 0],
] as const

/** A courier on a map of `size` × `size`, who must bring the letter to the house of its colour and cannot leave the map. */
export const courier = (size: number) =>
  Env.make({
    id: "Courier",
    observationSpace: dict({ map: box(0, 1, [3, size, size]), fuel: box(0, 1), letter: discrete(2) }),
    actionSpace: discrete(4),
    maxSteps: 20,
    reset: (random) => ({
      at: [random.integer(size), random.integer(size)],
      houses: [0, size * size - 1],
      letter: random.integer(2),
      fuel: 20,
    }),
    observe: ({ at: [x, y], houses, letter, fuel }) => {
      const map = new Float32Array(3 * size * size)
      map[y * size + x] = 1
      for (const [colour, place] of houses.entries()) map[(1 + colour) * size * size + place] = 1
      return { map, fuel: [fuel / 20], letter }
    },
    actionMask: ({ at: [x, y] }) => [y > 0, y < size - 1, x > 0, x < size - 1],
    step: ({ at: [x, y], houses, letter, fuel }, action) => {
      const at = [x + moves[action][0], y + moves[action][1]]
      const place = houses.indexOf(at[1] * size + at[0])
      const reward = place === letter ? 1 : place < 0 ? -0.02 : -1
      return { state: { at, houses, letter, fuel: fuel - 1 }, reward, terminated: place >= 0 }
    },
  })

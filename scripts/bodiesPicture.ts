// Draws docs/bodies.png: eight of MuJoCo's bodies a few steps after their start, each as its env's `renderSvg` shows it.
//   node scripts/bodiesPicture.ts
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { encodePng } from "../src/base/formats/picture/png.ts"
import { drawSvg } from "../src/base/formats/picture/svg.ts"
import { stream } from "../src/base/rng/Rng.ts"
import * as Ant from "../src/rl/env/mujoco/bodies/Ant.ts"
import * as HalfCheetah from "../src/rl/env/mujoco/bodies/HalfCheetah.ts"
import * as Hopper from "../src/rl/env/mujoco/bodies/Hopper.ts"
import * as Humanoid from "../src/rl/env/mujoco/bodies/Humanoid.ts"
import * as InvertedDoublePendulum from "../src/rl/env/mujoco/bodies/InvertedDoublePendulum.ts"
import * as Pusher from "../src/rl/env/mujoco/bodies/Pusher.ts"
import * as Swimmer from "../src/rl/env/mujoco/bodies/Swimmer.ts"
import * as Walker2d from "../src/rl/env/mujoco/bodies/Walker2d.ts"

const bodies = [HalfCheetah, Ant, Humanoid, Walker2d, Hopper, Swimmer, Pusher, InvertedDoublePendulum]
const columns = 4
const steps = 6
/** A pixel of the picture is the mean of as many pixels of a drawing along each side. */
const shrink = 2

/** Plays some random actions, and returns the picture of what they lead to, without the terms of the reward. */
const pictureOf = Effect.fnUntraced(function* ({ env }: (typeof bodies)[number]) {
  yield* env.prepare ?? Effect.void
  const random = stream(3)
  const { low, high } = env.actionSpace
  let state = env.reset(random)
  for (let step = 0; step < steps; step++) {
    state = env.step(
      state,
      Array.from(low, (lowest, at) => random.between(lowest, high[at])),
      random,
    ).state
  }
  return yield* drawSvg(env.renderSvg?.({ ...state, terms: {} }) ?? "")
})

const main = Effect.gen(function* () {
  const pictures = yield* Effect.forEach(bodies, pictureOf)
  const [wide, high] = [pictures[0].width / shrink, pictures[0].height / shrink]
  const width = columns * wide
  const height = Math.ceil(pictures.length / columns) * high
  const rgba = new Uint8ClampedArray(4 * width * height)
  for (const [index, picture] of pictures.entries()) {
    const [left, top] = [(index % columns) * wide, Math.floor(index / columns) * high]
    for (let y = 0; y < high; y++) {
      for (let x = 0; x < 4 * wide; x++) {
        const [pixel, channel] = [Math.floor(x / 4), x % 4]
        let sum = 0
        for (let dy = 0; dy < shrink; dy++) {
          for (let dx = 0; dx < shrink; dx++)
            sum += picture.rgba[4 * ((shrink * y + dy) * picture.width + shrink * pixel + dx) + channel]
        }
        rgba[4 * ((top + y) * width + left) + x] = Math.round(sum / shrink ** 2)
      }
    }
  }
  return yield* encodePng({ width, height, rgba })
})

writeFileSync(
  fileURLToPath(new URL("../docs/bodies.png", import.meta.url)),
  await Effect.runPromise(Effect.scoped(main)),
)

/** Defines what both mountain car envs share: the physics and the rendering of a car in a valley. */
import { cos, sin } from "../../../base/rng/Elementary.ts"
import { type ActionSpace, box } from "../Space.ts"
import { mountainCar } from "../ui/mountainCar.ts"
import { scene } from "../ui/scene.ts"
import { canvas, caption, disc, palette, path, short, stroke, svg } from "./draw.ts"
import { clip, type Motion, motionEnv } from "./motion.ts"

// The bounds of the position, the largest speed, and the strength of gravity along the slope.
const lowest = -1.2
const highest = 0.6
const fastest = 0.07
const gravity = 0.0025

/** Moves the car at offset `at` by the force `push`, writes its observation to `into`; tells if it is at the goal. */
export const drive = (states: Float64Array, at: number, push: number, goal: number, into: Float32Array): boolean => {
  const speed = clip(states[at + 1] + (push - gravity * cos(3 * states[at])), fastest)
  const position = Math.min(Math.max(states[at] + speed, lowest), highest)
  const velocity = position === lowest && speed < 0 ? 0 : speed
  states[at] = into[at] = position
  states[at + 1] = into[at + 1] = velocity
  return position >= goal && velocity >= 0
}

interface Hill<A extends ActionSpace> extends Pick<
  Motion<A>,
  "id" | "actionSpace" | "maxSteps" | "rewardThreshold" | "advance"
> {
  readonly goal: number
}

/** Makes a mountain car env, with `dynamics` (see `motionEnv`), from the rules in which the two envs differ. */
export const hillEnv = <A extends ActionSpace>({ goal, ...rules }: Hill<A>) =>
  motionEnv({
    ...rules,
    observationSpace: box([lowest, -fastest], [highest, fastest]),
    columns: ["positions", "velocities"],
    reset: (states, at, random) => {
      states[at] = random.between(-0.6, -0.4)
      states[at + 1] = 0
    },
    renderText: ([position, velocity]) => hillText(position, velocity, goal),
    renderSvg: ([position, velocity]) => hillSvg(rules.id, position, velocity, goal),
    ui: scene(rules.id, mountainCar, { lowest, highest, goal, continuous: rules.actionSpace._tag === "Box" }),
  })

/** Returns the height of the valley at a position, as it is rendered. */
const height = (position: number): number => sin(3 * position) * 0.45 + 0.55

const hillText = (position: number, velocity: number, goal: number): string => {
  const { put, write, text } = canvas(61, 14, { width: highest - lowest, height: 1.3 })
  const shown = (at: number, above: number, character: string): void =>
    put(at - (highest + lowest) / 2, height(at) - 0.6 + above, character)
  for (let at = lowest; at <= highest; at += 0.01) shown(at, 0, "·")
  shown(goal, 0.1, "⚑")
  shown(position, 0.07, "●")
  write(0, 0, `position ${short(position)}  velocity ${short(velocity)}`)
  return text()
}

const hillSvg = (title: string, position: number, velocity: number, goal: number): string => {
  const at = (x: number, above = 0) => ({
    x: 20 + ((x - lowest) / (highest - lowest)) * 560,
    y: 280 - height(x) * 220 - above,
  })
  const track = Array.from({ length: 91 }, (_, index) => at(lowest + ((highest - lowest) * index) / 90))
  // The slope of the rendered track, i.e. the derivative of `height` scaled to pixels.
  const slope = 1.35 * cos(3 * position) * (220 / 560) * (highest - lowest)
  const along = 14 / Math.sqrt(1 + slope * slope)
  const car = at(position, 13)
  const back = { x: car.x - along, y: car.y + along * slope }
  const front = { x: car.x + along, y: car.y - along * slope }
  return svg(title, 600, 300, [
    path(track, palette.ink, 3),
    stroke(at(goal), at(goal, 46), palette.goal, 3),
    stroke(at(goal, 46), { x: at(goal).x + 18, y: at(goal, 40).y }, palette.goal, 6),
    stroke(back, front, palette.body, 16),
    disc({ x: back.x, y: back.y + 8 }, 5, palette.pole),
    disc({ x: front.x, y: front.y + 8 }, 5, palette.pole),
    caption(`position ${short(position)}, velocity ${short(velocity)}`),
  ])
}

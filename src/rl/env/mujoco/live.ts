/**
 * Shows the moments of a simulation while a page watches, and lets a person pull at a body as with a spring. `Mujoco.env` makes
 * one for each env.
 */
import type { BodyPull, EnvBody } from "../EnvBody.ts"
import { type Camera, scene as picture } from "../ui/scene.ts"
import { type Place, type SceneView, viewOf } from "../ui/view.ts"
import { shapeSize, shownIn, weightOf } from "./scenes.ts"
import type { MujocoWorld, Simulation, SimulationWatch } from "./Simulation.ts"

export interface LiveBody extends Pick<EnvBody, "watch"> {
  /** What the simulation has to call in its steps; undefined while nobody watches. */
  readonly watching: () => SimulationWatch | undefined
  /** Receives the terms of a step's reward. */
  readonly earned: (terms: Readonly<Record<string, number>>) => void
}

/** A point of a body that a person holds. */
interface Grip {
  readonly body: number
  /** Where the point is for the body. */
  readonly local: Place
  /** How far in front of the camera it was when it was taken. */
  readonly away: number
}

/** What a person's pull does in a step: a force on a body, and the line that shows it. */
interface Pulled {
  readonly body: number
  readonly from: Place
  readonly to: Place
  readonly force: Place
}

/** The acceleration of a pull, for each metre to the pointer, and against each metre per second. */
const stiffness = 100
const damping = 10
/** The largest force of a pull, and the force of a push, as multiples of the weight of all bodies. */
const strongestPull = 3
const strongestPush = 0.8
/** How near to a shape a pointer must be to take it, in the picture's unit; a finger is not exact. */
const reach = 24

interface Watched {
  readonly pull: BodyPull | undefined
  readonly moments: Array<unknown>
  terms: Readonly<Record<string, number>>
  pulled: Pulled | undefined
}

/** Makes what watches the simulation that `ready` returns. */
export const liveBody = (camera: Camera, ready: () => Simulation): LiveBody => {
  let watched: Watched | undefined
  let grip: Grip | undefined
  /** Where the held point was one moment ago. */
  let last: Place | undefined
  const pulledBy = (pull: BodyPull, simulation: Simulation): Pulled | undefined => {
    const { world } = simulation
    const scene = simulation.scene()
    const view = viewOf(camera, picture, followedIn(scene, camera.follows))
    if (pull._tag === "Push") return pushed(world, view, pull)
    grip ??= gripAt(world, scene, view, pull.at)
    if (grip === undefined) return undefined
    const from = worldPlace(world, grip)
    const to = view.placeAt(pull.at[0], pull.at[1], grip.away)
    const moved = springForce(world, { grip, from, to, last, seconds: simulation.timestep })
    last = from
    return moved
  }
  const watching = (): SimulationWatch | undefined => {
    const now = watched
    if (now === undefined) return undefined
    const simulation = ready()
    return {
      before: () => {
        now.pulled = now.pull === undefined ? undefined : pulledBy(now.pull, simulation)
        if (now.pulled !== undefined) apply(simulation.world, now.pulled)
      },
      after: () => {
        const { pulled } = now
        const line = pulled === undefined ? {} : { pull: [...pulled.from, ...pulled.to] }
        now.moments.push({ scene: simulation.scene(), forces: simulation.forces(), ...line })
      },
    }
  }
  return {
    watching,
    earned: (terms) => {
      if (watched !== undefined) watched.terms = terms
    },
    watch: (pull, take) => {
      if (pull?._tag !== "Pointer") grip = last = undefined
      const own: Watched = { pull, moments: [], terms: {}, pulled: undefined }
      watched = own
      try {
        return { result: take(), moments: own.moments, seconds: ready().timestep, terms: own.terms }
      } finally {
        watched = undefined
      }
    },
  }
}

const followedIn = (scene: Float32Array, shape: number): readonly [number, number] =>
  shape < 0 ? [0, 0] : [scene[shapeSize * shape + 4] ?? 0, scene[shapeSize * shape + 5] ?? 0]

/** Returns the point of the shape that is seen at a point of the picture, or near it; undefined if none is. */
const gripAt = (
  world: MujocoWorld,
  scene: Float32Array,
  view: SceneView,
  [x, y]: readonly [number, number],
): Grip | undefined => {
  const bodies = world.model.geom_bodyid
  const candidates = shownIn(world.model).flatMap((geom, index) => {
    const body = bodies[geom]
    // The world itself, its walls and rails, cannot be moved.
    if (body === 0) return []
    const [, radius, half, , ...rest] = scene.subarray(shapeSize * index, shapeSize * index + shapeSize)
    const [first, second] = [-half, half].map((way) => view.seen(placeOn(rest, way)))
    const [dx, dy] = [second[0] - first[0], second[1] - first[1]]
    const long = dx * dx + dy * dy
    const share = long === 0 ? 0.5 : Math.min(Math.max(((x - first[0]) * dx + (y - first[1]) * dy) / long, 0), 1)
    const place = placeOn(rest, half * (2 * share - 1))
    const [atX, atY, away] = view.seen(place)
    const [edgeX, edgeY] = view.seen([
      place[0] + radius * view.right[0],
      place[1] + radius * view.right[1],
      place[2] + radius * view.right[2],
    ])
    const gap = Math.max(Math.hypot(x - atX, y - atY) - Math.hypot(edgeX - atX, edgeY - atY), 0)
    return away > 0 && gap <= reach ? [{ body, place, away, gap }] : []
  })
  const [best] = candidates.toSorted((one, other) => one.gap - other.gap || one.away - other.away)
  if (best === undefined) return undefined
  return { body: best.body, local: localPlace(world, best.body, best.place), away: best.away }
}

/** Returns a place on the axis of a shape, whose place and direction are given. */
const placeOn = ([x, y, z, alongX, alongY, alongZ]: ReadonlyArray<number>, way: number): Place => [
  x + way * alongX,
  y + way * alongY,
  z + way * alongZ,
]

const localPlace = ({ data: { xpos, xmat } }: MujocoWorld, body: number, place: Place): Place => {
  const way = [0, 1, 2].map((axis) => place[axis] - xpos[3 * body + axis])
  const axis = (column: number): number =>
    [0, 1, 2].reduce((sum, row) => sum + xmat[9 * body + 3 * row + column] * way[row], 0)
  return [axis(0), axis(1), axis(2)]
}

const worldPlace = ({ data: { xpos, xmat } }: MujocoWorld, { body, local }: Grip): Place => {
  const axis = (row: number): number =>
    xpos[3 * body + row] + [0, 1, 2].reduce((sum, column) => sum + xmat[9 * body + 3 * row + column] * local[column], 0)
  return [axis(0), axis(1), axis(2)]
}

interface Spring {
  readonly grip: Grip
  readonly from: Place
  readonly to: Place
  readonly last: Place | undefined
  readonly seconds: number
}

const springForce = ({ model }: MujocoWorld, { grip, from, to, last = from, seconds }: Spring): Pulled => {
  const { body } = grip
  // The inverse weight says how easily the body moves, joints and the other bodies included.
  const mass = 1 / Math.max(model.body_invweight0[2 * body], 1e-9)
  const axis = (at: 0 | 1 | 2): number =>
    mass * (stiffness * (to[at] - from[at]) - (damping * (from[at] - last[at])) / seconds)
  const force: Place = [axis(0), axis(1), axis(2)]
  const size = Math.hypot(...force)
  const share = Math.min(1, (strongestPull * weightOf(model)) / Math.max(size, 1e-9))
  return { body, from, to, force: [force[0] * share, force[1] * share, force[2] * share] }
}

/** Returns a push of the heaviest body. The line that shows it is as long as a tenth of the camera's distance. */
const pushed = (
  { model, data: { xipos } }: MujocoWorld,
  view: SceneView,
  { right, up }: { readonly right: number; readonly up: number },
): Pulled => {
  const body = model.body_mass.indexOf(Math.max(...model.body_mass.subarray(1)))
  const from: Place = [xipos[3 * body], xipos[3 * body + 1], xipos[3 * body + 2]]
  const [fromX, fromY, away] = view.seen(from)
  const to = view.placeAt(fromX + 60 * right, fromY - 60 * up, away)
  const strength = strongestPush * weightOf(model)
  const axis = (at: 0 | 1 | 2): number => strength * (right * view.right[at] + up * view.up[at])
  return { body, from, to, force: [axis(0), axis(1), axis(2)] }
}

/** Adds a force at a point of a body; MuJoCo takes it at the middle of the body's mass, with its torque there. */
const apply = ({ data: { xfrc_applied, xipos } }: MujocoWorld, { body, from, force }: Pulled): void => {
  const [x, y, z] = [0, 1, 2].map((axis) => from[axis] - xipos[3 * body + axis])
  const torque = [y * force[2] - z * force[1], z * force[0] - x * force[2], x * force[1] - y * force[0]]
  for (const [at, value] of [...force, ...torque].entries()) xfrc_applied[6 * body + at] += value
}

/** Writes models that are plain data (`bodies/`) in MuJoCo's format MJCF. */
import type { Mjcf } from "./Simulation.ts"

export type Vector = readonly [x: number, y: number, z: number]

/** The attributes of an element, with MJCF's names. */
export type Attributes = Readonly<Record<string, string | number | boolean | ReadonlyArray<number>>>

/** A rigid part of a body: where it is in its parent, how it can move there, its shapes, and the parts that hang on it. */
export interface Part {
  readonly name: string
  readonly at: Vector
  /** The rotation in its parent, as a quaternion. */
  readonly turned?: readonly [number, number, number, number]
  /** Without joints, the part moves with its parent. */
  readonly joints?: ReadonlyArray<Attributes>
  readonly shapes: ReadonlyArray<Attributes>
  readonly sites?: ReadonlyArray<Attributes>
  readonly parts?: ReadonlyArray<Part>
}

/** A world: what is the same for all its joints, shapes and motors, what stands in it, and its bodies. */
export interface World {
  readonly name: string
  readonly angle: "degree" | "radian"
  /** If given, all masses are scaled so that their sum is this. */
  readonly mass?: number
  /** Settings of the simulation: its time step, integrator and solver, gravity, and the medium around. */
  readonly option: Attributes
  readonly defaults: { readonly joint?: Attributes; readonly shape?: Attributes }
  readonly shapes: ReadonlyArray<Attributes>
  readonly parts: ReadonlyArray<Part>
  /** Tendons that join joints, by the weight of each. */
  readonly tendons?: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** The motors, in the order of an action's numbers: their joints, and the torque or force at the action 1. */
  readonly motors: ReadonlyArray<readonly [joint: string, gear: number]>
  /** The largest action, in both directions. */
  readonly strongest: number
}

export const hinge = (
  name: string,
  axis: Vector,
  range: readonly [number, number],
  more: Attributes = {},
): Attributes => ({
  type: "hinge",
  name,
  axis,
  range,
  ...more,
})

/** A joint that nothing limits, slows or pulls back: with two slides, it lets a body move freely in a plane. */
export const loose = (type: "slide" | "hinge", name: string, axis: Vector, more: Attributes = {}): Attributes => ({
  type,
  name,
  axis,
  limited: false,
  armature: 0,
  damping: 0,
  stiffness: 0,
  ...more,
})

/** A capsule around the line between two points. */
export const capsule = (from: Vector, to: Vector, radius: number, more: Attributes = {}): Attributes => ({
  type: "capsule",
  fromto: [...from, ...to],
  size: radius,
  ...more,
})

/** A capsule along its own z axis, around its middle. */
export const rod = (at: Vector, radius: number, half: number, more: Attributes = {}): Attributes => ({
  type: "capsule",
  pos: at,
  size: [radius, half],
  ...more,
})

export const sphere = (at: Vector, radius: number, more: Attributes = {}): Attributes => ({
  type: "sphere",
  pos: at,
  size: radius,
  ...more,
})

export const plane = (size: Vector, more: Attributes = {}): Attributes => ({ type: "plane", size, ...more })

/** Writes a world as MJCF. */
export const mjcfOf = (world: World): Mjcf => {
  const { name, angle, mass, option, defaults, shapes, parts, tendons = {}, motors, strongest } = world
  const content = [
    element("compiler", { angle, inertiafromgeom: true, ...(mass !== undefined && { settotalmass: mass }) }),
    element("option", option),
    element("default", {}, [element("joint", defaults.joint ?? {}), element("geom", defaults.shape ?? {})]),
    element("worldbody", {}, [...shapes.map((shape) => element("geom", shape)), ...parts.map(partText)]),
    element("tendon", {}, Object.entries(tendons).map(tendonText)),
    element(
      "actuator",
      {},
      motors.map(([joint, gear]) =>
        element("motor", { joint, gear, ctrllimited: true, ctrlrange: [-strongest, strongest] }),
      ),
    ),
  ]
  return { xml: element("mujoco", { model: name }, content) }
}

const partText = ({ name, at, turned, joints = [], shapes, sites = [], parts = [] }: Part): string =>
  element("body", { name, pos: at, ...(turned && { quat: turned }) }, [
    ...joints.map((joint) => element("joint", joint)),
    ...shapes.map((shape) => element("geom", shape)),
    ...sites.map((site) => element("site", site)),
    ...parts.map(partText),
  ])

const tendonText = ([name, joints]: readonly [string, Readonly<Record<string, number>>]): string =>
  element(
    "fixed",
    { name },
    Object.entries(joints).map(([joint, coef]) => element("joint", { joint, coef })),
  )

/** Writes an element. Names and words of our own models need no escapes. */
const element = (tag: string, attributes: Attributes, content: ReadonlyArray<string> = []): string => {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${[value].flat().join(" ")}"`)
  return `<${tag}${written.join("")}>${content.join("")}</${tag}>`
}

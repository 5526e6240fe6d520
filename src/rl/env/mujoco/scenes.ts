/** Lists the shapes of a world as numbers, which `ui/scene.ts` draws. Planes are left out: a picture shows them as the floor. */
import type { MujocoWorld } from "./Simulation.ts"

/** MuJoCo's numbers of the kinds of shapes. */
const kinds = { plane: 0, sphere: 2, capsule: 3, cylinder: 5 } as const

/** A scene has this many numbers for each shape; `ui/scene.ts` says which. */
export const shapeSize = 11

/** Returns the numbers of the shapes that a scene lists. */
export const shownIn = ({ ngeom, geom_type: types, geom_rgba: colours }: MujocoWorld["model"]): ReadonlyArray<number> =>
  Array.from({ length: ngeom }, (_, geom) => geom).filter(
    (geom) => types[geom] !== kinds.plane && colours[4 * geom + 3] !== 0,
  )

/**
 * Returns a function that lists the shapes as they are now. What never changes, such as sizes and colours, is written once,
 * because a list is made in each step.
 */
export const scenesOf = (world: MujocoWorld): (() => Float32Array) => {
  const { geom_type: types, geom_size: sizes, geom_rgba: colours } = world.model
  const shown = shownIn(world.model)
  const still = new Float32Array(shapeSize * shown.length)
  for (const [index, geom] of shown.entries()) {
    const [kind, to] = [types[geom], shapeSize * index]
    const [radius, half] = extentOf(kind, sizes.subarray(3 * geom, 3 * geom + 3))
    still[to] = kind === kinds.sphere || kind === kinds.cylinder ? kind : kinds.capsule
    still[to + 1] = radius
    still[to + 2] = half
    still[to + 10] = [0, 1, 2].reduce((sum, channel) => 256 * sum + Math.round(255 * colours[4 * geom + channel]), 0)
  }
  return () => {
    const { geom_xpos: places, geom_xmat: turns } = world.data
    const all = still.slice()
    for (let index = 0; index < shown.length; index++) {
      const geom = shown[index]
      for (let axis = 0; axis < 3; axis++) {
        all[shapeSize * index + 4 + axis] = places[3 * geom + axis]
        // The length of a shape is along its own z axis, the third column of its rotation.
        all[shapeSize * index + 7 + axis] = turns[9 * geom + 3 * axis + 2]
      }
    }
    return all
  }
}

/** Returns the radius and half of the length that a shape is drawn with. Boxes and meshes become capsules of their size. */
const extentOf = (kind: number, size: Float64Array): readonly [radius: number, half: number] => {
  if (kind === kinds.sphere) return [size[0], 0]
  if (kind === kinds.capsule || kind === kinds.cylinder) return [size[0], size[1]]
  const radius = Math.min(size[0], size[1])
  return [radius, Math.max(size[2] - radius, 0)]
}

/** Acceleration by gravity on Earth, in m/s². Forces are compared with weights also where a model has no gravity. */
const gravity = 9.81

/** Returns the weight of all bodies of a model, in newtons. */
export const weightOf = ({ body_mass: masses }: MujocoWorld["model"]): number =>
  gravity * masses.reduce((sum, mass) => sum + mass, 0)

/**
 * Returns a function that lists the contact forces as they are now (see `Simulation`). MuJoCo sums the forces of all contacts of
 * a body, with their torque around a centre, which together tell the line along which the sum acts.
 */
export const forcesOf = (world: MujocoWorld): (() => Float32Array) => {
  const { nbody, body_rootid: roots } = world.model
  const weight = weightOf(world.model)
  return () => {
    const { cfrc_ext: sums, subtree_com: centres, xipos: middles } = world.data
    const all: Array<number> = []
    for (let body = 1; body < nbody; body++) {
      // By index, because this is done in each step, and taking an array apart takes as long as all the rest.
      const at = 6 * body
      const [x, y, z] = [sums[at + 3], sums[at + 4], sums[at + 5]]
      const square = x * x + y * y + z * z
      if (square === 0) continue
      const [tx, ty, tz] = [sums[at], sums[at + 1], sums[at + 2]]
      const [root, own] = [3 * roots[body], 3 * body]
      // The nearest point of the line to the centre of the torque, then to the middle of the body.
      const near = [
        centres[root] + (y * tz - z * ty) / square,
        centres[root + 1] + (z * tx - x * tz) / square,
        centres[root + 2] + (x * ty - y * tx) / square,
      ]
      const way = (middles[own] - near[0]) * x + (middles[own + 1] - near[1]) * y + (middles[own + 2] - near[2]) * z
      const share = way / square
      all.push(near[0] + share * x, near[1] + share * y, near[2] + share * z, x / weight, y / weight, z / weight)
    }
    return Float32Array.from(all)
  }
}

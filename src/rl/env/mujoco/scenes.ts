/** Lists the shapes of a world as numbers, which `ui/scene.ts` draws. Planes are left out: a picture shows them as the floor. */
import type { MujocoWorld } from "./Simulation.ts"

/** MuJoCo's numbers of the kinds of shapes. */
const kinds = { plane: 0, sphere: 2, capsule: 3, cylinder: 5 } as const

/**
 * Returns a function that lists the shapes as they are now. What never changes, such as sizes and colours, is written once,
 * because a list is made in each step.
 */
export const scenesOf = (world: MujocoWorld): (() => Float32Array) => {
  const { geom_type: types, geom_size: sizes, geom_rgba: colours, ngeom } = world.model
  const shown = Array.from({ length: ngeom }, (_, geom) => geom).filter(
    (geom) => types[geom] !== kinds.plane && colours[4 * geom + 3] !== 0,
  )
  const still = new Float32Array(11 * shown.length)
  for (const [index, geom] of shown.entries()) {
    const [kind, to] = [types[geom], 11 * index]
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
        all[11 * index + 4 + axis] = places[3 * geom + axis]
        // The length of a shape is along its own z axis, the third column of its rotation.
        all[11 * index + 7 + axis] = turns[9 * geom + 3 * axis + 2]
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

/** Lists the shapes of a world as numbers, which `ui/scene.ts` draws. Planes are left out: a picture shows them as the floor. */
import type { MujocoWorld } from "./Simulation.ts"

/** MuJoCo's numbers of the kinds of shapes. */
const kinds = { plane: 0, sphere: 2, capsule: 3, cylinder: 5 } as const

export const sceneOf = ({ model, data }: MujocoWorld): Float32Array => {
  const { geom_type: types, geom_size: sizes, geom_rgba: colours, ngeom } = model
  const { geom_xpos: places, geom_xmat: turns } = data
  const all = new Float32Array(11 * ngeom)
  let to = 0
  for (let geom = 0; geom < ngeom; geom++) {
    const kind = types[geom]
    if (kind === kinds.plane || colours[4 * geom + 3] === 0) continue
    const [radius, half] = extentOf(kind, sizes.subarray(3 * geom, 3 * geom + 3))
    all[to] = kind === kinds.sphere || kind === kinds.cylinder ? kind : kinds.capsule
    all[to + 1] = radius
    all[to + 2] = half
    for (let axis = 0; axis < 3; axis++) {
      all[to + 4 + axis] = places[3 * geom + axis]
      // The length of a shape is along its own z axis, the third column of its rotation.
      all[to + 7 + axis] = turns[9 * geom + 3 * axis + 2]
    }
    all[to + 10] = [0, 1, 2].reduce((sum, channel) => 256 * sum + Math.round(255 * colours[4 * geom + channel]), 0)
    to += 11
  }
  return all.slice(0, to)
}

/** Returns the radius and half of the length that a shape is drawn with. Boxes and meshes become capsules of their size. */
const extentOf = (kind: number, size: Float64Array): readonly [radius: number, half: number] => {
  if (kind === kinds.sphere) return [size[0], 0]
  if (kind === kinds.capsule || kind === kinds.cylinder) return [size[0], size[1]]
  const radius = Math.min(size[0], size[1])
  return [radius, Math.max(size[2] - radius, 0)]
}

/** The legs and the trunk of Hopper and of Walker2d, and what both measure. */
import { hinge, type Part, rod, type Vector } from "../mjcf.ts"
import { here, planar } from "./shared.ts"

const back: Vector = [0, -1, 0]

/** A leg of Hopper or Walker2d: thigh, leg and foot. `toe` is how far the foot's middle is in front of the ankle. */
export const leg = (
  suffix: string,
  foot: { readonly ankle: number; readonly toe: number; readonly half: number; readonly friction: number },
): Part => {
  const knee = [-150, 0] as const
  const named = (part: string) => `${part}${suffix}`
  return {
    name: named("thigh"),
    at: [0, 0, -0.19999999999999996],
    joints: [hinge(`${named("thigh")}_joint`, back, knee)],
    shapes: [
      rod([0, 0, -0.22500000000000009], 0.05, 0.22500000000000003, { name: `${named("thigh")}_geom`, friction: 0.9 }),
    ],
    parts: [
      {
        name: named("leg"),
        at: [0, 0, -0.70000000000000007],
        joints: [hinge(`${named("leg")}_joint`, back, knee, { pos: [0, 0, 0.25] })],
        shapes: [rod(here, 0.04, 0.25, { name: `${named("leg")}_geom`, friction: 0.9 })],
        parts: [
          {
            name: named("foot"),
            at: [foot.ankle, 0, -0.35],
            joints: [hinge(`${named("foot")}_joint`, back, [-45, 45], { pos: [-foot.ankle, 0, 0.1] })],
            shapes: [
              rod([-foot.toe, 0, 0.1], 0.06, foot.half, {
                name: `${named("foot")}_geom`,
                friction: foot.friction,
                quat: [Math.SQRT1_2, 0, -Math.SQRT1_2, 0],
              }),
            ],
          },
        ],
      },
    ],
  }
}

export const trunk = (parts: ReadonlyArray<Part>): Part => ({
  name: "torso",
  at: [0, 0, 1.25],
  joints: planar(1.25),
  shapes: [rod(here, 0.05, 0.19999999999999996, { name: "torso_geom", friction: 0.9 })],
  parts,
})

/**
 * Contains the JavaScript that renders Acrobot on a canvas in the browser: its links, the line that the free end must
 * cross, and the torque. `Acrobot.ts` passes it to `scene` (see `scene.ts`), which adds the shared helpers.
 */
export const acrobot = String.raw`
const width = 480
const height = 480
const long = 88

function draw(stage, [angle1, angle2, velocity1, velocity2], [action]) {
  const { colours, left, top, right, bottom, faded, line, dashes, disc, slab, curl, caption, dial, remember, fading } = stage
  const hinge = [width / 2, 226]
  // Angles grow counter-clockwise from hanging down; the second is relative to the first link.
  const beyond = ([x, y], angle) => [x + long * Math.sin(angle), y + long * Math.cos(angle)]
  const elbow = beyond(hinge, angle1)
  const hand = beyond(elbow, angle1 + angle2)
  const bar = hinge[1] - long
  const above = hand[1] < bar

  faded(above ? 0.22 : 0.07, () => slab(left, top, right - left, bar - top, 0, colours.goal))
  dashes([[left, bar], [right, bar]], colours.goal, 3, 10)

  fading(remember(...hand, 12), colours.pole, 10, 0.4)

  const link = (from, to, colour) => {
    line([from, to], colour, 20)
    faded(0.18, () => line([from, to], "#fff", 5))
  }
  link(hinge, elbow, colours.body)
  link(elbow, hand, colours.pole)
  slab(hinge[0] - 24, hinge[1] - 7, 48, 14, 7, colours.faint)
  disc(...hinge, 10, colours.ink)
  disc(...hinge, 5.5, colours.joint)
  disc(...elbow, 10, colours.ink)
  disc(...elbow, 5.5, colours.joint)
  disc(...hand, 7, above ? colours.goal : colours.paper)

  const torque = action === undefined ? 0 : action - 1
  curl(...elbow, 34, torque > 0 ? 0.6 : turn / 2 - 0.6, -torque * 2, colours.act, 7)

  caption("speeds " + short(velocity1) + ", " + short(velocity2))
  if (action !== undefined) dial(width / 2, bottom - 30, 160, -torque)
}
`

/**
 * Contains the JavaScript that renders a pendulum and its torque on a canvas in the browser. `Pendulum.ts` passes it to
 * `scene` (see `scene.ts`), which adds the shared helpers `turn`, `clip` and `short`, and the constant `strongest`: the
 * largest torque.
 */
export const pendulum = String.raw`
const width = 480
const height = 480
const rod = 148

function draw(stage, [angle, velocity], [action]) {
  const { colours, bottom, faded, line, disc, ring, curl, caption, dial, remember, fading } = stage
  const [x, y] = [width / 2, height / 2 - 14]
  // Angles grow counter-clockwise from upright.
  const at = (far) => [x - far * Math.sin(angle), y - far * Math.cos(angle)]
  const upright = Math.max(0, Math.cos(angle)) ** 8

  ring(x, y, rod, colours.faint, 2)
  for (let tick = 0; tick < 12; tick++) {
    const direction = (tick * turn) / 12
    line(
      [[x + (rod + 30) * Math.sin(direction), y - (rod + 30) * Math.cos(direction)],
        [x + (rod + 36) * Math.sin(direction), y - (rod + 36) * Math.cos(direction)]],
      tick === 0 ? colours.goal : colours.faint,
      tick === 0 ? 5 : 3,
    )
  }
  faded(0.12 + 0.3 * upright, () => disc(x, y - rod, 30, colours.goal))
  ring(x, y - rod, 30, colours.goal, 2)

  fading(remember(...at(rod), 14), colours.pole, 20, 0.4)

  const torque = clip((action ?? 0) / strongest, -1, 1)
  curl(x, y, 52, -turn / 4, -torque * 2.4, colours.act, 8)

  line([[x, y], at(rod)], colours.body, 13)
  faded(0.22, () => line([at(14), at(rod - 26)], "#fff", 3))
  disc(...at(rod), 24, colours.pole)
  const [bobX, bobY] = at(rod)
  faded(0.3, () => disc(bobX - 7, bobY - 7, 7, "#fff"))
  disc(x, y, 14, colours.ink)
  disc(x, y, 8, colours.joint)

  const turned = angle - turn * Math.floor(angle / turn + 0.5)
  caption("angle " + short((turned * 360) / turn, 1) + "\u00b0   speed " + short(velocity))
  if (action !== undefined) dial(width / 2, bottom - 32, 220, -torque)
}
`

/** Draws a pendulum and its torque. */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const pendulum: EnvDrawing<{ readonly strongest: number }> = {
  width: 480,
  height: 480,
  terminal: { columns: 41, rows: 19, from: [45, 31], to: [435, 421] },
  source: { draw: pageText.pendulum },
  draw: (stage, [angle, velocity], [action], values) => {
    const { colours, bottom, faded, line, disc, ring, letter, caption, turn, clip, short, curl, dial } = stage
    const { remember, fading } = stage
    const { strongest, width, height } = values
    const rod = 148
    const [x, y] = [width / 2, height / 2 - 14]
    // Angles grow counter-clockwise from upright.
    const at = (far: number): StagePoint => [x - far * Math.sin(angle), y - far * Math.cos(angle)]
    const [bobX, bobY] = at(rod)
    const upright = Math.max(0, Math.cos(angle)) ** 8

    ring(x, y, rod, colours.faint, 2)
    for (let tick = 0; tick < 12; tick++) {
      const direction = (tick * turn) / 12
      line(
        tick === 0 ? colours.goal : colours.faint,
        tick === 0 ? 5 : 3,
        [x + (rod + 30) * Math.sin(direction), y - (rod + 30) * Math.cos(direction)],
        [x + (rod + 36) * Math.sin(direction), y - (rod + 36) * Math.cos(direction)],
      )
    }
    faded(0.12 + 0.3 * upright, () => disc(x, y - rod, 30, colours.goal))
    ring(x, y - rod, 30, colours.goal, 2)

    fading(remember(bobX, bobY, 14), colours.pole, 20, 0.4)

    const torque = clip((action ?? 0) / strongest, -1, 1)
    curl(x, y, 52, -turn / 4, -torque * 2.4, colours.act, 8)

    line(colours.body, 13, [x, y], at(rod))
    faded(0.22, () => line("#fff", 3, at(14), at(rod - 26)))
    disc(bobX, bobY, 24, colours.pole)
    faded(0.3, () => disc(bobX - 7, bobY - 7, 7, "#fff"))
    disc(x, y, 14, colours.ink)
    disc(x, y, 8, colours.joint)

    const turned = angle - turn * Math.floor(angle / turn + 0.5)
    letter("•", [x, y], at(rod))
    letter("◉", [x, y])
    caption(`angle ${short((turned * 360) / turn, 1)}°   speed ${short(velocity)}`)
    if (action !== undefined) dial(width / 2, bottom - 32, 220, -torque)
  },
}

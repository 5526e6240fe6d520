/** Draws the links of Acrobot, the line that the free end must cross, and the torque. */
import type { EnvDrawing, StagePoint } from "./shapes.ts"
import * as pageText from "./pageText.ts"

export const acrobot: EnvDrawing = {
  width: 480,
  height: 480,
  terminal: { columns: 47, rows: 22, from: [30, 16], to: [450, 436] },
  source: { draw: pageText.acrobot },
  draw: (stage, [angle1, angle2, velocity1, velocity2], [action], values) => {
    const { colours, left, top, right, bottom, faded, line, disc, slab, letter, caption, turn, short, dashes } = stage
    const { curl, dial, remember, fading } = stage
    const { width } = values
    const long = 88
    const hinge: StagePoint = [width / 2, 226]
    // Angles grow counter-clockwise from hanging down; the second is relative to the first link.
    const beyond = ([x, y]: StagePoint, angle: number): StagePoint => [
      x + long * Math.sin(angle),
      y + long * Math.cos(angle),
    ]
    const elbow = beyond(hinge, angle1)
    const hand = beyond(elbow, angle1 + angle2)
    const bar = hinge[1] - long
    const above = hand[1] < bar

    faded(above ? 0.22 : 0.07, () => slab(left, top, right - left, bar - top, 0, colours.goal))
    dashes([left, bar], [right, bar], colours.goal, 3, 10)

    fading(remember(hand[0], hand[1], 12), colours.pole, 10, 0.4)

    const link = (from: StagePoint, to: StagePoint, colour: string): void => {
      line(colour, 20, from, to)
      faded(0.18, () => line("#fff", 5, from, to))
    }
    link(hinge, elbow, colours.body)
    link(elbow, hand, colours.pole)
    slab(hinge[0] - 24, hinge[1] - 7, 48, 14, 7, colours.faint)
    disc(hinge[0], hinge[1], 10, colours.ink)
    disc(hinge[0], hinge[1], 5.5, colours.joint)
    disc(elbow[0], elbow[1], 10, colours.ink)
    disc(elbow[0], elbow[1], 5.5, colours.joint)
    disc(hand[0], hand[1], 7, above ? colours.goal : colours.paper)

    const torque = action === undefined ? 0 : action - 1
    curl(elbow[0], elbow[1], 34, torque > 0 ? 0.6 : turn / 2 - 0.6, -torque * 2, colours.act, 7)

    letter("╌", [hinge[0] - 2.2 * long, bar], [hinge[0] + 2.2 * long, bar])
    letter("•", hinge, elbow)
    letter("∘", elbow, hand)
    letter("◉", hinge)
    caption(`angles ${short(angle1)}, ${short(angle2)}   speeds ${short(velocity1)}, ${short(velocity2)}`)
    if (action !== undefined) dial(width / 2, bottom - 30, 160, -torque)
  },
}

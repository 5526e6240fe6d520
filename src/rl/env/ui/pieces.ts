/** Draws the pieces of board games. Browsers get these functions as text (`pageText.ts`). */
import type { EnvStage, StagePoint } from "./shapes.ts"

/**
 * Draws a piece in a square of side 1 around (0, 0). `detail` is the piece's own number, which for many is the side that it
 * faces: 1 is the right, −1 the left. `move` is the agent's direction.
 */
type PaintPiece = (stage: EnvStage, detail: number, move: StagePoint, isSmall: boolean) => void

/** The letter of each kind of piece in a terminal, and its drawing. */
export const pieces: Readonly<Record<string, readonly [letter: string, paint: PaintPiece]>> = {
  wall: [
    "█",
    ({ slab, faded, colours }) => {
      slab(-0.505, -0.505, 1.01, 1.01, 0, colours.stone)
      faded(0.1, () => slab(-0.505, -0.505, 1.01, 0.14, 0, "#fff"))
    },
  ],
  hedge: [
    "▒",
    ({ slab, disc, faded, dark }) => {
      slab(-0.505, -0.44, 1.01, 0.94, 0.2, dark ? "#2f6b57" : "#6a9c78")
      faded(0.16, () => disc(-0.2, -0.12, 0.16, "#fff"))
      faded(0.12, () => disc(0.22, 0.12, 0.14, "#000"))
    },
  ],
  door: [
    "╫",
    ({ slab, disc, shape, colours }) => {
      slab(-0.5, -0.5, 1, 1, 0, colours.stone)
      slab(-0.38, -0.44, 0.76, 0.94, 0.1, colours.pole)
      disc(0, -0.06, 0.11, colours.ink)
      shape(colours.ink, [-0.04, 0], [0.04, 0], [0.09, 0.24], [-0.09, 0.24])
    },
  ],
  opening: [
    "·",
    ({ slab, faded, colours }) => {
      slab(-0.5, -0.5, 1, 0.1, 0, colours.pole)
      slab(-0.5, 0.4, 1, 0.1, 0, colours.pole)
      faded(0.14, () => slab(-0.5, -0.4, 1, 0.8, 0, colours.pole))
    },
  ],
  goal: [
    "★",
    ({ shape, faded, disc, colours, turn }) => {
      faded(0.18, () => disc(0, 0, 0.48, colours.goal))
      const point = (index: number): StagePoint => {
        const far = index % 2 === 0 ? 0.38 : 0.16
        return [far * Math.sin((index * turn) / 10), -far * Math.cos((index * turn) / 10)]
      }
      shape(colours.goal, ...Array.from({ length: 10 }, (_, index) => point(index)))
    },
  ],
  key: [
    "⚷",
    ({ ring, line, colours, dark }) => {
      const gold = dark ? colours.joint : "#c8961f"
      ring(-0.18, 0, 0.15, gold, 0.1)
      line(gold, 0.1, [-0.02, 0], [0.36, 0])
      line(gold, 0.09, [0.2, 0.02], [0.2, 0.15])
      line(gold, 0.09, [0.34, 0.02], [0.34, 0.17])
    },
  ],
  apple: [
    "●",
    ({ disc, line, faded, colours, dark }) => {
      disc(-0.1, 0.06, 0.24, colours.pole)
      disc(0.1, 0.06, 0.24, colours.pole)
      line(dark ? "#a58467" : "#6b4f3a", 0.07, [0, -0.14], [0.07, -0.34])
      faded(0.35, () => disc(-0.14, -0.03, 0.07, "#fff"))
    },
  ],
  agent: [
    "☻",
    ({ disc, faded, colours }, _, [across, down], isSmall) => {
      // On a large board, with small cells, the agent is larger and has a halo, to be seen.
      if (isSmall) faded(0.25, () => disc(0, 0, 2.6, colours.act))
      const size = isSmall ? 1.1 : 0.38
      disc(0, 0, size, isSmall ? colours.act : colours.body)
      faded(0.16, () => disc(-0.28 * size, -0.34 * size, 0.46 * size, "#fff"))
      for (const eye of [-0.34, 0.34]) {
        const [x, y] = [(eye + across * 0.2) * size, (down * 0.26 - 0.08) * size]
        disc(x, y, 0.24 * size, "#fff")
        disc(x + across * 0.09 * size, y + down * 0.09 * size, 0.13 * size, "#20222e")
      }
    },
  ],
  ball: [
    "●",
    ({ disc, faded, colours }) => {
      disc(0, 0, 0.34, colours.pole)
      faded(0.4, () => disc(-0.1, -0.11, 0.1, "#fff"))
    },
  ],
  trail: ["∘", ({ disc, faded, colours }) => faded(0.3, () => disc(0, 0, 0.22, colours.pole))],
  brick: [
    "▓",
    ({ slab, faded, colours }, row) => {
      slab(-0.46, -0.4, 0.92, 0.8, 0.14, [colours.goal, colours.body, colours.joint][row % 3])
      faded(0.2, () => slab(-0.38, -0.33, 0.76, 0.13, 0.065, "#fff"))
    },
  ],
  paddle: [
    "▬",
    ({ slab, faded, colours }) => {
      slab(-0.5, -0.3, 1, 0.56, 0.26, colours.act)
      faded(0.3, () => slab(-0.36, -0.22, 0.72, 0.12, 0.06, "#fff"))
    },
  ],
  cross: [
    "×",
    ({ line, colours }) => {
      line(colours.pole, 0.15, [-0.26, -0.26], [0.26, 0.26])
      line(colours.pole, 0.15, [-0.26, 0.26], [0.26, -0.26])
    },
  ],
  nought: ["○", ({ ring, colours }) => ring(0, 0, 0.28, colours.body, 0.15)],
  enemy: [
    "◆",
    ({ disc, line, faded, colours }, side) => {
      faded(0.3, () => line(colours.pole, 0.12, [-0.4 * side, -0.12], [-0.9 * side, -0.12]))
      faded(0.3, () => line(colours.pole, 0.12, [-0.4 * side, 0.14], [-0.75 * side, 0.14]))
      disc(0, 0, 0.36, colours.pole)
      for (const eye of [-0.04, 0.22]) {
        disc(eye * side, -0.08, 0.1, "#fff")
        disc((eye + 0.03) * side, -0.08, 0.05, "#20222e")
      }
    },
  ],
  gold: [
    "$",
    ({ disc, ring, line, faded, colours, dark }, side) => {
      const edge = dark ? "#a8842a" : "#c8961f"
      faded(0.3, () => line(edge, 0.12, [-0.4 * side, 0], [-0.85 * side, 0]))
      disc(0, 0, 0.34, colours.joint)
      ring(0, 0, 0.24, edge, 0.06)
    },
  ],
  chicken: [
    "▲",
    ({ disc, shape, colours }) => {
      disc(0, 0.06, 0.34, colours.joint)
      for (const comb of [-0.1, 0.04, 0.16]) disc(comb, -0.3, 0.09, colours.pole)
      shape(colours.act, [-0.1, 0], [0.1, 0], [0, 0.18])
      for (const eye of [-0.14, 0.14]) disc(eye, -0.06, 0.06, "#20222e")
    },
  ],
  car: [
    "■",
    ({ slab, line, faded, colours }, speed) => {
      const { pole, act, joint, goal, body } = colours
      const side = Math.sign(speed)
      const colour = [pole, act, joint, goal, body][Math.abs(speed) - 1]
      // The faster a car is, the longer are the lines behind it.
      for (const row of [-0.14, 0.14]) {
        const long = 0.16 * (6 - Math.abs(speed))
        faded(0.35, () => line(colour, 0.08, [-0.46 * side, row], [(-0.46 - long) * side, row]))
      }
      for (const wheel of [-0.34, 0.14]) {
        slab(wheel, -0.34, 0.2, 0.68, 0.06, colours.stone)
      }
      slab(-0.46, -0.27, 0.92, 0.54, 0.16, colour)
      slab(side > 0 ? 0.06 : -0.24, -0.19, 0.18, 0.38, 0.05, "#20222e")
    },
  ],
  sub: [
    "◉",
    // The back of the submarine is in the next cell.
    ({ slab, disc, line, faded, colours, dark }, side) => {
      const hull = dark ? colours.joint : "#c8961f"
      line(hull, 0.12, [-0.5 * side, -0.2], [-0.5 * side, -0.44], [-0.3 * side, -0.44])
      slab(side > 0 ? -1.4 : -0.42, -0.26, 1.82, 0.56, 0.28, hull)
      line(colours.stone, 0.1, [-1.44 * side, -0.22], [-1.44 * side, 0.26])
      for (const window of [0.1, -0.4, -0.9]) disc(window * side, 0.02, 0.11, colours.paper)
      faded(0.3, () => slab(side > 0 ? -1.2 : -0.2, -0.2, 1.4, 0.1, 0.05, "#fff"))
    },
  ],
  fish: [
    "∝",
    ({ oval, disc, shape, faded, line, colours }, side) => {
      faded(0.25, () => line(colours.goal, 0.1, [-0.5 * side, 0], [-0.9 * side, 0]))
      shape(colours.goal, [-0.16 * side, 0], [-0.46 * side, -0.24], [-0.46 * side, 0.24])
      oval(0.08 * side, 0, 0.34, 0.24, colours.goal)
      disc(0.24 * side, -0.06, 0.06, "#20222e")
    },
  ],
  enemySub: [
    "◙",
    ({ slab, disc, faded, line, colours }, side) => {
      faded(0.25, () => line(colours.stone, 0.1, [-0.5 * side, 0.06], [-0.9 * side, 0.06]))
      slab(-0.14, -0.36, 0.24, 0.3, 0.06, colours.pole)
      slab(-0.46, -0.16, 0.92, 0.44, 0.22, colours.pole)
      disc(0.24 * side, 0.06, 0.09, colours.paper)
    },
  ],
  diver: [
    "☺",
    ({ disc, line, oval, faded, colours }, side) => {
      faded(0.25, () => line(colours.body, 0.08, [-0.5 * side, 0.08], [-0.85 * side, 0.08]))
      line(colours.act, 0.1, [-0.26 * side, 0.06], [-0.44 * side, 0.2])
      oval(-0.06 * side, 0.06, 0.26, 0.13, colours.body)
      disc(0.24 * side, -0.06, 0.14, "#e8b48a")
    },
  ],
  air: ["=", ({ slab, colours }) => slab(-0.5, -0.2, 1, 0.4, 0, colours.body)],
  saved: [
    "☺",
    ({ disc, colours }) => {
      disc(0, 0, 0.26, colours.paper)
      disc(0, 0, 0.18, colours.act)
    },
  ],
  // A bullet flies across if its own number is 1, otherwise up or down.
  bullet: [
    "'",
    ({ line, colours }, across) =>
      line(colours.act, 0.16, [-0.18 * across, -0.18 * (1 - across)], [0.18 * across, 0.18 * (1 - across)]),
  ],
  enemyBullet: [
    "!",
    ({ line, colours }, across) =>
      line(colours.pole, 0.16, [-0.18 * across, -0.18 * (1 - across)], [0.18 * across, 0.18 * (1 - across)]),
  ],
  alien: [
    "W",
    ({ slab, disc, line, colours }, side) => {
      for (const edge of [-1, 1]) {
        line(colours.goal, 0.08, [0.14 * edge, -0.2], [0.26 * edge, -0.4])
        line(colours.goal, 0.1, [0.2 * edge, 0.14], [0.34 * edge, 0.36])
      }
      slab(-0.36, -0.24, 0.72, 0.46, 0.16, colours.goal)
      for (const eye of [-0.13, 0.13]) disc(eye + 0.05 * side, -0.02, 0.08, colours.paper)
    },
  ],
  cannon: [
    "▲",
    ({ slab, colours }) => {
      slab(-0.08, -0.42, 0.16, 0.4, 0.05, colours.act)
      slab(-0.26, -0.14, 0.52, 0.3, 0.1, colours.act)
      slab(-0.46, 0.08, 0.92, 0.34, 0.12, colours.act)
    },
  ],
}

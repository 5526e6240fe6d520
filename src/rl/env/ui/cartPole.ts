/**
 * The JavaScript for `scene` that renders a cart with its pole on a track, and the limits of the pole's angle. Its
 * constants are the largest distance from the middle in metres (`farthest`) and the largest angle in radians
 * (`steepest`).
 */
export const cartPole = String.raw`
const width = 600
const height = 400
const floor = 290
const metre = 104
const long = 165

function draw(stage, [x, , angle], [action]) {
  const { colours, left, right, bottom, faded, line, shape, disc, slab, shadow, sky, arrow, caption, keys } = stage
  const middle = width / 2 + x * metre
  const hinge = floor - 46
  const away = (lean, far) => [middle + far * Math.sin(lean), hinge - far * Math.cos(lean)]
  const lost = Math.abs(x) > farthest || Math.abs(angle) > steepest

  sky(colours.paper, colours.paper, floor)
  slab(left, floor, right - left, bottom - floor, 0, colours.deep)
  line([[left, floor], [right, floor]], colours.faint, 3)
  for (let at = -2; at <= 2; at++) {
    const tick = width / 2 + at * metre
    line([[tick, floor + 8], [tick, floor + (at === 0 ? 20 : 14)]], at === 0 ? colours.muted : colours.faint, 2)
  }
  for (const side of [-1, 1]) {
    const post = width / 2 + side * farthest * metre
    line([[post, floor - 26], [post, floor]], colours.pole, 4)
    disc(post, floor - 30, 5, colours.pole)
  }

  faded(0.1, () => {
    const arc = Array.from({ length: 13 }, (_, index) => away(steepest * (index / 6 - 1), long + 26))
    shape([[middle, hinge], ...arc], lost ? colours.pole : colours.goal)
  })

  shadow(middle, floor + 5, 58, 6)
  if (action !== undefined) {
    const way = action === 1 ? 1 : -1
    arrow(middle + way * 56, hinge + 12, way * 44, 0, colours.act, 8)
  }
  slab(middle - 48, hinge - 8, 96, 40, 11, colours.body)
  faded(0.16, () => slab(middle - 42, hinge - 4, 84, 7, 3.5, "#fff"))
  for (const side of [-1, 1]) {
    const [wheel, axle] = [middle + side * 27, floor - 12]
    disc(wheel, axle, 12, colours.ink)
    disc(wheel, axle, 8, colours.muted)
    for (const spoke of [0, turn / 4]) {
      const spin = (x * metre) / 12 + spoke
      const [across, down] = [7 * Math.cos(spin), 7 * Math.sin(spin)]
      line([[wheel - across, axle - down], [wheel + across, axle + down]], colours.ink, 2)
    }
  }

  const pole = lost ? colours.muted : colours.pole
  line([[middle, hinge], away(angle, long)], pole, 13)
  faded(0.28, () => line([away(angle + 0.02, 16), away(angle + 0.002, long - 2)], "#fff", 3))
  disc(middle, hinge, 10, colours.ink)
  disc(middle, hinge, 6, colours.joint)

  caption("x " + short(x) + " m   angle " + short((angle * 360) / turn, 1) + "\u00b0")
  keys(width / 2, (floor + bottom) / 2 + 12, [[-0.55, 0], [0.55, 0]], action, 38)
}
`

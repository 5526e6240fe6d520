/**
 * The JavaScript for `scene` that renders a mass on its line, and below it the same state as a point in the plane of
 * position and speed. Its constants are the limits `farthest` (position), `fastest` (speed) and `strongest` (force).
 */
export const doubleIntegrator = String.raw`
const width = 480
const height = 500
const half = 190

function draw(stage, [position, velocity], [action]) {
  const { colours, left, right, bottom, faded, line, disc, ring, slab, shadow, arrow, words, caption, dial, remember, fading } = stage
  const force = clip((action ?? 0) / strongest, -1, 1)
  const path = remember(position, velocity, 100)
  // Choose the scale so that the whole path fits.
  const needed = Math.max(...path.flat().map(Math.abs))
  const span = [1.25, 2.5].find((wide) => needed <= wide) ?? Math.max(farthest, fastest)
  const unit = half / span
  const middle = width / 2
  const across = (x) => middle + x * unit

  const rail = 112
  slab(left, rail, right - left, 6, 0, colours.faint)
  for (let tick = -4; tick <= 4; tick++) {
    const at = across((tick * span) / 5)
    line([[at, rail + 12], [at, rail + 17]], tick === 0 ? colours.goal : colours.faint, 3)
  }
  faded(0.16, () => slab(middle - 24, rail - 44, 48, 44, 10, colours.goal))
  shadow(across(position), rail + 2, 24, 4)
  arrow(across(position) + Math.sign(force) * 26, rail - 21, force * 52, 0, colours.act, 7)
  slab(across(position) - 20, rail - 41, 40, 40, 9, colours.body)
  faded(0.18, () => slab(across(position) - 15, rail - 37, 30, 6, 3, "#fff"))

  const plane = 290
  const at = ([x, v]) => [across(x), plane - (v * unit * 138) / half]
  for (let tick = -4; tick <= 4; tick++) {
    const share = (tick * span) / 5
    line([at([share, -span]), at([share, span])], colours.faint, tick === 0 ? 2.5 : 1)
    line([at([-span, share]), at([span, share])], colours.faint, tick === 0 ? 2.5 : 1)
  }
  words("speed", middle + 8, plane - 130, { size: 12 })
  words("position", middle + half, plane + 14, { size: 12, align: "right" })
  words("\u00b1" + span, middle - half, plane + 14, { size: 12 })
  ring(...at([0, 0]), 14, colours.goal, 3)
  ring(...at([0, 0]), 7, colours.goal, 2)
  fading(path.map(at), colours.pole, 3.5, 0.9)
  disc(...at([position, velocity]), 9, colours.pole)
  faded(0.3, () => disc(at([position, velocity])[0] - 2.5, at([position, velocity])[1] - 2.5, 2.5, "#fff"))

  caption("position " + short(position) + "   speed " + short(velocity))
  if (action !== undefined) dial(middle, bottom - 28, 220, force)
}
`

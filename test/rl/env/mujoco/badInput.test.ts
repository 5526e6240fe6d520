import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import { MujocoPackage } from "../../../../src/rl/env/mujoco/engine.ts"
import * as Mujoco from "../../../../src/rl/env/mujoco/Mujoco.ts"
import { box } from "../../../../src/rl/env/Space.ts"

const slider = (content = "", body = "<geom size='0.1'/>") => ({
  xml: `<mujoco>${content}<worldbody><body><joint name="x" type="slide"/>${body}</body></worldbody>
    <actuator><motor joint="x"/></actuator></mujoco>`,
})

const ballWith = (more: Partial<Mujoco.MujocoDefinition> = {}) =>
  Mujoco.env({
    id: "ball",
    model: slider(),
    observationSpace: box(-Infinity, Infinity, [2]),
    actionSpace: box(-1, 1),
    observe: ({ data }) => [data.qpos[0], data.qvel[0]],
    reward: () => ({}),
    ...more,
  })

const messageOf = (definition: Partial<Mujoco.MujocoDefinition>) =>
  Effect.scoped(Batch.open(ballWith(definition), 1)).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
  )

const replicated = (depth: number): string =>
  depth === 0 ? "<geom size='0.1'/>" : `<replicate count='100'>${replicated(depth - 1)}</replicate>`

describe("a model of MuJoCo", () => {
  it.effect.each<readonly [string, Mujoco.Mjcf, string | RegExp]>([
    ["that names a missing model", slider("<include file='arm.xml'/>"), /arm\.xml/],
    ["by another version", slider("<option warp='1'/>"), /unrecognized attribute.*warp.*line 1.*MuJoCo 3\.14\.0/],
    [
      "with copies of copies",
      slider("", replicated(4)),
      "<replicate> in line 1: the model has more than 50000 elements",
    ],
    ["with a count as entities", slider("", "<replicate count='&#57;99999'/>"), "count: expected whole numbers"],
    [
      "with a height field of 40 GB",
      slider("<asset><hfield name='h' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>"),
      "<hfield> in line 1: expected at most 67108864 numbers or pixels, found 10000000000",
    ],
    [
      "with a texture of 10 GB",
      slider("<asset><texture name='t' builtin='flat' width='60000' height='60000'/></asset>"),
      "<texture> in line 1: expected at most",
    ],
    [
      "with a mesh of too many faces",
      slider("<asset><mesh name='m' builtin='supersphere' params='90000 1 1'/></asset>"),
      "<mesh> in line 1: expected parameters of at most 1000, found 90000 1 1",
    ],
    [
      "whose solver takes hours for a step",
      slider("<option solver='PGS' tolerance='0' iterations='2000000000'/>"),
      "<option> in line 1: expected at most 10000 iterations, found 2000000000",
    ],
    [
      "with a cloth of a billion points",
      slider("", "<composite type='grid' count='1000 1000 1000'/>"),
      "more than 50000",
    ],
    ["with a count after a quoted one", slider("", `<replicate sep=" count='1' " count="99999"/>`), "more than 50000"],
    ["without a space before a count", slider("", `<replicate offset="1 0 0"count="99999"/>`), "more than 50000"],
    ["with a space before a name", slider("", "< replicate count='99999'/>"), "more than 50000"],
    ["with no copies of many", slider("", `<replicate count='0'>${replicated(4)}</replicate>`), "more than 50000"],
    ["with a fraction of a copy", slider("", "<replicate count='0.001'/>"), "count: expected whole numbers"],
    [
      "with a quote in its declaration",
      { xml: `<?xml version="1.0' ?>${slider("", replicated(4)).xml}` },
      "more than 50000",
    ],
    ["with a quote in its type", { xml: `<!DOCTYPE ' >${slider("", replicated(4)).xml}` }, "more than 50000"],
    [
      "with a cube whose sides are large",
      slider("<asset><texture name='t' type='skybox' builtin='flat' width='18000' height='1'/></asset>"),
      "<texture> in line 1: expected at most",
    ],
    [
      "with many fine meshes",
      slider(`<asset>${"<mesh builtin='supersphere' params='900 1 1'/>".repeat(2)}</asset>`),
      "<mesh> in line 1: the meshes that MuJoCo makes have more than 1000000 points",
    ],
    ["with many keyframes", slider("<size nkey='99999999'/>"), "nkey: expected at most 10000, found 99999999"],
    [
      "with many numbers for each body",
      slider("<size nuser_body='99999999'/>"),
      "nuser_body: expected at most 10000, found 99999999",
    ],
    ["with many first points of shapes", slider("<option sdf_initpoints='2000000000'/>"), "expected at most 10000"],
    ["with a long name and many spaces", slider(`<custom ${"n".repeat(1e6)}/><${" ".repeat(1e6)}>`), /ball: model: /],
    [
      "with a long cable",
      slider("", "<composite type='cable' count='1000 1 1' curve='s' size='1'/>"),
      "more than 50000",
    ],
    ["that needs more memory than there is", slider("<size memory='3G'/>"), "it does not fit into MuJoCo's memory"],
    [
      "with a state of many numbers",
      slider("<size nuserdata='2000000'/>"),
      "numbers (2 bodies); expected at most 1000000",
    ],
    ["that is too deep", slider("", `${"<body>".repeat(5000)}${"</body>".repeat(5000)}`), /ball: model: /],
  ])("%s is refused", ([, model, message]) =>
    Effect.gen(function* () {
      const found = yield* messageOf({ model })
      if (typeof message === "string") assert.include(found, message)
      else assert.match(found, message)
      // The next model does not suffer from it.
      yield* Effect.scoped(Batch.open(ballWith(), 1))
    }),
  )

  it.effect("of which two do not fit into the memory: the second is refused, and the first goes on", () =>
    Effect.gen(function* () {
      const model = slider("<size memory='1200M'/>")
      const first = yield* Batch.open(ballWith({ model }), 1)
      yield* Effect.sync(() => first.reset(1))
      assert.include(yield* messageOf({ model }), "2 GB in each thread for all models")
      yield* Effect.sync(() => first.step(new Float32Array(1)))
    }),
  )

  it.effect("with entities of entities does not grow", () =>
    Effect.gen(function* () {
      const entities = Array.from({ length: 12 }, (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`).join("")
      const { xml } = slider("<custom><text name='t' data='&e12;'/></custom>")
      const model = { xml: `<!DOCTYPE m [<!ENTITY e0 "ha">${entities}]>${xml}` }
      yield* Effect.scoped(Batch.open(ballWith({ model }), 1))
    }),
  )

  it.effect("names its file in errors", () =>
    Effect.gen(function* () {
      const model = { ...slider("<option warp='1'/>"), path: "robots/arm.xml" }
      assert.match(yield* messageOf({ model }), /^ball: robots\/arm\.xml: .*line 1/)
    }),
  )

  it.effect("has the limits also in the models that it includes, whatever their names are", () =>
    Effect.gen(function* () {
      const part = utf8.encode(`<mujoco><worldbody>${replicated(3)}</worldbody></mujoco>\0`)
      for (const name of ["part.xml", "part.txt", "part"]) {
        const model = { ...slider(`<include file="${name}"/>`), files: { [name]: part } }
        assert.include(yield* messageOf({ model }), `ball: ${name}: <replicate> in line 1: the model has more than`)
      }
      // What is behind the first byte 0 is no part of a text: a picture may have anything there.
      const picture = Uint8Array.of(137, 0, ...part)
      yield* Effect.scoped(Batch.open(ballWith({ model: { ...slider(), files: { "p.png": picture } } }), 1))
    }),
  )

  it.effect("comments and quotes hide nothing, and count for nothing", () =>
    Effect.gen(function* () {
      const many = "<replicate count='99999'/>"
      yield* Effect.scoped(Batch.open(ballWith({ model: slider(`<!-- ${many} -->`) }), 1))
      const quoted = slider(`<custom><text name='t' data='a > b'/></custom>`, many)
      assert.include(yield* messageOf({ model: quoted }), "more than 50000")
    }),
  )
})

describe("Mujoco.env", () => {
  it.effect("refuses actions that are no numbers, or too many", () =>
    Effect.gen(function* () {
      const env = ballWith()
      yield* env.prepare ?? Effect.void
      const state = env.reset(stream(1))
      assert.throws(() => env.step(state, [NaN], stream(1)), "ball: action[0]: expected a finite number, found NaN")
      assert.throws(() => env.step(state, [1, 2], stream(1)), "ball: action: expected 1 numbers, found 2")
      const batch = yield* Batch.open(env, 2)
      yield* Effect.sync(() => batch.reset(1))
      assert.throws(
        () => batch.step(Float32Array.from([0, NaN])),
        "ball: env 1, episode 0, step 1: action element 0 is NaN; expected a finite number",
      )
    }),
  )

  it.effect("refuses observations of another length, or with NaN", () =>
    Effect.gen(function* () {
      const problem = Effect.fnUntraced(function* (observe: Mujoco.MujocoDefinition["observe"]) {
        const batch = yield* Batch.open(ballWith({ observe }), 1)
        return yield* Effect.flip(Effect.try(() => batch.reset(1)))
      })
      const long = yield* problem(() => [1, 2, 3])
      assert.include(String(long.cause), "observe returned 3 numbers, the observation space wants an array of 2")
      const none = yield* problem(() => [1, NaN])
      assert.include(String(none.cause), "observation element 1 is NaN, not a finite number")
    }),
  )

  it.effect("refuses the state of another model", () =>
    Effect.gen(function* () {
      const [small, large] = [ballWith(), ballWith({ model: slider("<size nuserdata='3'/>") })]
      for (const env of [small, large]) yield* env.prepare ?? Effect.void
      const states = [small, large].map((env) => env.reset(stream(1)))
      const message =
        /ball: the state has \d+ numbers, those of this model have \d+; a state, such as one in a checkpoint,/
      assert.throws(() => small.step(states[1], [0], stream(1)), message)
      assert.throws(() => large.step(states[0], [0], stream(1)), message)
    }),
  )

  it.effect("says which version of the package it found", () =>
    Effect.gen(function* () {
      // A copy of this module has its own engine, as in a new thread.
      const { loadMujoco } = yield* Effect.promise(
        (): Promise<typeof import("../../../../src/rl/env/mujoco/engine.ts")> =>
          import(`${"../../../../src/rl/env/mujoco/engine.ts"}?other`),
      )
      const other = { mj_versionString: () => "3.2.7", MjModel: {}, mj_setState: {}, mj_rnePostConstraint: {} }
      const { message } = yield* Effect.flip(loadMujoco("ball")).pipe(
        Effect.provideService(MujocoPackage, () => Promise.resolve(() => Promise.resolve(other))),
      )
      assert.strictEqual(
        message,
        "ball: MuJoCo could not be loaded: expected MuJoCo 3.14, found 3.2.7; run `npm install @mujoco/mujoco@3.14.0`",
      )
    }),
  )

  it.effect("starts MuJoCo anew after it crashed, since its memory cannot be trusted", () =>
    Effect.gen(function* () {
      const { loadMujoco } = yield* Effect.promise(
        (): Promise<typeof import("../../../../src/rl/env/mujoco/engine.ts")> =>
          import(`${"../../../../src/rl/env/mujoco/engine.ts"}?crashing`),
      )
      let starts = 0
      const crash = (): never => {
        throw Object.assign(new Error("memory access out of bounds"), { name: "RuntimeError" })
      }
      const crashing = () => ({
        mj_versionString: () => "3.14.0",
        MjVFS: class {
          delete() {}
        },
        MjModel: { from_xml_string: crash },
        mj_setState: {},
        mj_rnePostConstraint: {},
      })
      const start = () => {
        starts++
        return Promise.resolve(crashing())
      }
      const load = Effect.provideService(loadMujoco("ball"), MujocoPackage, () => Promise.resolve(start))
      for (const expected of [1, 2]) {
        const compile = yield* load
        assert.throws(() => compile(slider()), "ball: model: memory access out of bounds (MuJoCo 3.14.0)")
        assert.strictEqual(starts, expected)
      }
    }),
  )

  /** Opens batches of new envs, and closes them. Four of these models at once would not fit into MuJoCo's memory. */
  const opening = (times: number) =>
    Effect.gen(function* () {
      const model = slider("<size memory='500M'/>")
      for (let open = 0; open < times; open++) {
        const env = ballWith({ model })
        const [first, second] = [Scope.makeUnsafe(), Scope.makeUnsafe()]
        yield* Scope.provide(Batch.open(env, 1), first)
        const batch = yield* Scope.provide(Batch.open(env, 1), second)
        yield* Scope.close(first, Exit.void)
        batch.reset(1)
        batch.step(new Float32Array(1))
        yield* Scope.close(second, Exit.void)
        assert.throws(() => env.reset(stream(1)), "MuJoCo is not loaded")
        // Errors keep no memory either: a wrong model, and one that does not fit to the env.
        if (open % 10 !== 0) continue
        yield* messageOf({ model: slider("<size memory='500M'/><option warp='1'/>") })
        yield* messageOf({ model, actionSpace: box(-1, 1, [2]) })
      }
    })

  it.effect("gives the memory of its model back when the last batch closes", () => opening(20))

  it.effect("gives it back a thousand times", () => opening(1000), { tags: "slow" })
})

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mjcfFile } from "../../../../src/rl/env/mujoco/file-node.ts"
import { loadMujoco } from "../../../../src/rl/env/mujoco/engine.ts"

const hull = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
const body = "<worldbody><body><joint name='x' type='slide'/><geom type='mesh' mesh='m'/></body></worldbody>"
const mesh = (file: string) => `<asset><mesh name='m' file="${file}"/></asset>`
const model = (content: string) => `<mujoco>${content}<actuator><motor joint='x'/></actuator></mujoco>`

/** Makes files in a folder that is removed with the scope. */
const folderWith = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "mjcf-"))
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true })
        writeFileSync(join(folder, name), text)
      }
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

describe("a model in a file", () => {
  it.effect.each<readonly [string, Readonly<Record<string, string>>]>([
    ["beside it", { "model.xml": model(mesh("./hull.obj") + body), "hull.obj": hull }],
    [
      "in the folder of its meshes",
      { "model.xml": model(`<compiler meshdir='meshes/'/>${mesh("hull.obj")}${body}`), "meshes/hull.obj": hull },
    ],
    [
      "of models that it includes, in their folders",
      {
        "model.xml": model(`<include file="parts/body.xml"/>`),
        "parts/body.xml": `<mujoco><include file="assets.xml"/>${body}</mujoco>`,
        "parts/assets.xml": `<mujoco>${mesh("deep/hull.obj")}</mujoco>`,
        "parts/deep/hull.obj": hull,
      },
    ],
    [
      "of a model that it includes, whose name has another ending",
      {
        "model.xml": model(`<include file="parts/body.part"/>`),
        "parts/body.part": `<mujoco>${mesh("hull.obj")}${body}</mujoco>`,
        "parts/hull.obj": hull,
      },
    ],
    [
      "of an included model, in a folder that the model names",
      {
        "model.xml": model(`<compiler assetdir='meshes'/><include file="parts/assets.xml"/>${body}`),
        "parts/assets.xml": `<mujoco>${mesh("hull.obj")}</mujoco>`,
        "parts/meshes/hull.obj": hull,
      },
    ],
  ])("has its files, %s", ([, files]) =>
    Effect.gen(function* () {
      const folder = yield* folderWith(files)
      const compile = yield* loadMujoco("hull")
      const { world } = compile(yield* mjcfFile(join(folder, "model.xml")))
      assert.deepStrictEqual([world.model.nu, world.model.ngeom], [1, 1])
    }).pipe(Effect.scoped),
  )

  it.effect("may not name what never ends, or too many places", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 101 }, (_, at) => ` file="${at}" meshdir="${at}"`).join("")
      const folder = yield* folderWith({
        "places.xml": `<mujoco${many}/>`,
      })
      const problem = (name: string) => Effect.map(Effect.flip(mjcfFile(join(folder, name))), ({ message }) => message)
      // The model itself may be a link to anywhere, as it is the user who names it.
      symlinkSync("/dev/zero", join(folder, "device.xml"))
      assert.include(yield* problem("device.xml"), "the model cannot be read: expected a regular file, found a device")
      assert.include(yield* problem("places.xml"), "the model names files in more than 10000 places")
    }).pipe(Effect.scoped),
  )

  it.effect("may not name files outside of its folder, not even by a link", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({
        "secret.obj": hull,
        "own/model.xml": model(mesh("../secret.obj") + body),
        "own/absolute.xml": "<mujoco><include file='/etc/passwd'/></mujoco>",
        "own/far.xml": "<mujoco><include file='../../../../../../../../etc/passwd'/></mujoco>",
        "own/entity.xml": model(mesh("&#46;&#46;/secret.obj") + body),
        "own/linked.xml": model(mesh("link.obj") + body),
        "own/linkedFolder.xml": model(mesh("parent/secret.obj") + body),
      })
      symlinkSync("../secret.obj", join(folder, "own/link.obj"))
      symlinkSync("..", join(folder, "own/parent"))
      const problem = (name: string) =>
        Effect.map(Effect.flip(mjcfFile(join(folder, "own", name))), ({ message }) => message)
      for (const [name, named] of [
        ["model.xml", "../secret.obj, which is"],
        ["absolute.xml", "/etc/passwd, which is"],
        ["far.xml", "etc/passwd, which is"],
        ["linked.xml", "link.obj, a link to a file"],
        ["linkedFolder.xml", "parent/secret.obj, a link to a file"],
      ])
        assert.include(yield* problem(name), `${named} outside of the folder ${join(folder, "own")}`, name)
      const compile = yield* loadMujoco("hull")
      // MuJoCo sees no files but those that were read.
      const hidden = yield* mjcfFile(join(folder, "own/entity.xml"))
      assert.throws(() => compile(hidden), /own\/entity\.xml: .*secret\.obj/)
      const allowed = yield* mjcfFile(join(folder, "own/model.xml"), { folder })
      assert.strictEqual(compile(allowed).world.model.ngeom, 1)
    }).pipe(Effect.scoped),
  )

  it.effect("whose files are not there names itself and them", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({
        "mesh.xml": model(mesh("lost.obj") + body),
        "include.xml": "<mujoco>\n<include file='lost.xml'/></mujoco>",
      })
      const compile = yield* loadMujoco("hull")
      const meshless = yield* mjcfFile(join(folder, "mesh.xml"))
      assert.throws(() => compile(meshless), /^hull: .*mesh\.xml: .*lost\.obj/)
      const partless = yield* mjcfFile(join(folder, "include.xml"))
      assert.throws(() => compile(partless), /^hull: .*include\.xml: .*lost\.xml/)
    }).pipe(Effect.scoped),
  )

  it.effect("cannot be a compiled one, and the error says of which version", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({})
      const header = Int32Array.from([54_321, 8, 69, 3_002_007, 500])
      writeFileSync(join(folder, "model.mjb"), new Uint8Array(header.buffer))
      const { message } = yield* Effect.flip(mjcfFile(join(folder, "model.mjb")))
      assert.include(message, "expected a model in MJCF (XML), found one that MuJoCo 3.2.7 compiled (MJB)")
    }).pipe(Effect.scoped),
  )

  it.effect("that is not there is an error with its path", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(mjcfFile(join(tmpdir(), "no-such-model.xml")))
      assert.match(message, /no-such-model\.xml: the model cannot be read: .*no-such-model\.xml/s)
    }),
  )
})

import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { ConfigProvider, Effect, Exit, Scope } from "effect"
import { GifReader } from "omggif"
import * as ort from "onnxruntime-node"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { fakeUploads } from "../../agents/task/hub/fakeUploads.ts"
import { uploadModel } from "../../../src/agents/task/hub/upload.ts"
import { effect, program, resultOf, withFolder, write } from "./effect.ts"
import { ServerRetries } from "../../../src/agents/lm/exchange.ts"
import { withVariables } from "./withVariables.ts"

const settings = "validation: { everySteps: 1024, episodes: 4, maxSteps: 20 }, checkpoint: { everySteps: 1024 }"

describe("effect push", () => {
  it("writes a repository whose card has the results, and code that runs", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const { runDir } = resultOf(
        await effect(["run", write(folder, "train.ts", program(settings)), "--quiet", "--json"], folder),
      )
      const pushed = await effect(["push", runDir, "--to", "model"], folder)
      assert.deepEqual([pushed.code, pushed.stdout, pushed.stderr], [0, "model\n", ""])
      const at = (name: string): string => join(folder, "model", name)
      assert.deepEqual(readdirSync(at("")).sort(), [
        "README.md",
        "checkpoint.onnx",
        "checkpoint.safetensors",
        "config.yaml",
        "curve.gif",
        "replay.gif",
      ])
      const card = readFileSync(at("README.md"), "utf8")
      const [, header, body] = /^---\n([^]*?)\n---\n([^]*)$/.exec(card) ?? []
      const validations = JSON.parse(readFileSync(join(folder, runDir, "return.json"), "utf8"))
      const { returns_mean: mean, returns_std: std } = validations.at(-1)
      assert.deepEqual(parse(header), {
        library_name: "effect-rl",
        pipeline_tag: "reinforcement-learning",
        tags: ["CartPole-v1", "ppo", "reinforcement-learning", "deep-reinforcement-learning", "effect-rl", "onnx"],
        "model-index": [
          {
            name: "ppo-CartPole-v1",
            results: [
              {
                task: { type: "reinforcement-learning", name: "reinforcement-learning" },
                dataset: { name: "CartPole-v1", type: "CartPole-v1" },
                metrics: [
                  {
                    type: "mean_reward",
                    value: `${mean.toFixed(2)} +/- ${std.toFixed(2)}`,
                    name: "mean_reward",
                    verified: false,
                  },
                ],
              },
            ],
          },
        ],
      })
      assert.deepEqual(readFileSync(at("config.yaml")), readFileSync(join(folder, runDir, "config.yaml")))
      assert.strictEqual(new GifReader(readFileSync(at("curve.gif"))).numFrames(), 1)
      assert.isAbove(new GifReader(readFileSync(at("replay.gif"))).numFrames(), 5)
      // The code of the card acts with the policy of its folder; instead of printing the action, it exports it.
      const [, code = ""] = /```ts\n([^]*?)```/.exec(body) ?? []
      writeFileSync(at("act.ts"), code.replace("console.log(action)", "export { action }"))
      const { action }: { readonly action: unknown } = await import(pathToFileURL(at("act.ts")).href)
      assert.include([0, 1], action)
      // Its other code does the same by ONNX Runtime; test/command/cli/push.slow.test.ts runs it in Python.
      const [, python = ""] = /```py\n([^]*?)```/.exec(body) ?? []
      assert.deepEqual(python.split("\n").slice(3), [
        `policy = onnxruntime.InferenceSession("checkpoint.onnx")`,
        `observations = np.array([[0,0,0,0]], np.float32)`,
        `(actions,) = policy.run(["actions"], {"observations": observations})`,
        "print(actions)",
        "",
      ])
      const session = await ort.InferenceSession.create(at("checkpoint.onnx"))
      const { actions } = await session.run({ observations: new ort.Tensor("float32", [0, 0, 0, 0], [1, 4]) })
      assert.strictEqual(Number(actions.data[0]), action)
      const again = await effect(["push", runDir, "--to", "model"], folder)
      assert.deepEqual(
        [again.code, again.stderr],
        [2, "effect: --to model: expected a new or empty folder; remove it or name another one\n"],
      )
      await Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const { url, repositories, uploads, leaked } = yield* fakeUploads({ t0ken: "ada" })
            yield* withVariables({ HF_ENDPOINT: url, HF_TOKEN: "t0ken" })
            const push = Effect.promise(() => effect(["push", runDir, "--repo", "ada/cartpole", "--private"], folder))
            const first = yield* push
            assert.deepEqual(
              [first.code, first.stdout, first.stderr],
              [0, `${url}/ada/cartpole\n`, `sending ada/cartpole to ${url}\n`],
            )
            const { isPrivate, commits } = repositories.get("ada/cartpole") ?? assert.fail("no repository")
            const names = readdirSync(at("")).filter((name) => name !== "act.ts")
            const expected = Object.fromEntries(names.map((name) => [name, readFileSync(at(name))]))
            assert.deepEqual([isPrivate, commits.map(({ files: sent }) => sent)], [true, [expected]])
            // The policy, its weights and two pictures are large files, which the second push does not send again.
            assert.strictEqual(uploads.length, 4)
            yield* push
            assert.deepEqual([commits.length, commits[1], uploads.length, leaked], [2, commits[0], 4, []])
          }),
        ),
      )
      const misnamed = await effect(["push", runDir, "--repo", "model"], folder)
      assert.strictEqual(
        misnamed.stderr,
        `effect: --repo: expected a repository such as ada/ppo-CartPole-v1, found "model"\n`,
      )
      for (const args of [[], ["--to", "a", "--repo", "b/c"]]) {
        const wrong = await effect(["push", runDir, ...args], folder)
        assert.deepEqual([wrong.code, wrong.stderr], [2, "effect: expected either --to FOLDER or --repo OWNER/NAME\n"])
      }
    }),
  )
})

describe("uploadModel", () => {
  const files = {
    "README.md": Buffer.from("# model\n"),
    "a.onnx": Buffer.from("policy"),
    "empty.gif": Buffer.alloc(0),
    "folder/b c.txt": Buffer.from("é"),
  }
  const withHub = async <A>(
    body: (
      hub: Effect.Success<ReturnType<typeof fakeUploads>>,
      upload: (token: string, id: string) => Promise<Exit.Exit<string, { readonly message: string }>>,
    ) => Promise<A>,
  ): Promise<A> => {
    const scope = await Effect.runPromise(Scope.make())
    try {
      const hub = await Effect.runPromise(Scope.provide(fakeUploads({ t0ken: "ada" }), scope))
      const upload = (token: string, id: string) =>
        Effect.runPromiseExit(
          Effect.provideService(
            uploadModel({ id, isPrivate: true, summary: "Add a policy", files }),
            ConfigProvider.ConfigProvider,
            ConfigProvider.fromUnknown({ HF_ENDPOINT: hub.url, HF_TOKEN: token }),
          ),
        )
      return await body(hub, upload)
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }

  it("makes the repository, stores large files once, and commits all", () =>
    withHub(async (hub, upload) => {
      for (const _ of [1, 2]) assert.deepEqual(await upload("t0ken", "ada/model"), Exit.succeed(`${hub.url}/ada/model`))
      const repository = hub.repositories.get("ada/model")
      assert.deepEqual([repository?.isPrivate, repository?.commits.length, hub.uploads.length], [true, 2, 1])
      for (const commit of repository?.commits ?? []) assert.deepEqual(commit, { summary: "Add a policy", files })
      assert.deepEqual(hub.leaked, [])
    }))

  it("explains refusals without the token", () =>
    withHub(async (hub, upload) => {
      for (const [token, id, message] of [
        [
          "wr0ng",
          "ada/model",
          `${hub.url}/api/repos/create answered 401: Invalid token <redacted>; check that the token in HF_TOKEN may write there`,
        ],
        [
          "t0ken",
          "eve/model",
          `${hub.url}/api/repos/create answered 403: You may not write to eve; check that the token in HF_TOKEN may write there`,
        ],
        ["t0ken", "model", `expected a repository such as ada/ppo-CartPole-v1, found "model"`],
        ["", "ada/model", "ada/model: set HF_TOKEN to a token that may write to this repository"],
      ]) {
        const outcome = await upload(token, id)
        const error = Exit.isFailure(outcome)
          ? String(Effect.runSync(Effect.flip(Effect.flatten(Effect.succeed(outcome)))).message)
          : ""
        assert.strictEqual(error, message)
      }
    }))

  const messageOf = (outcome: Exit.Exit<string, { readonly message: string }>): string =>
    Exit.isFailure(outcome) ? String(Effect.runSync(Effect.flip(outcome)).message) : ""

  it("goes on with a repository that there is, if it is as private as asked", () =>
    withHub(async (hub, upload) => {
      hub.repositories.set("ada/given", { isPrivate: true, commits: [] })
      assert.deepEqual(await upload("t0ken", "ada/given"), Exit.succeed(`${hub.url}/ada/given`))
      hub.repositories.set("ada/public", { isPrivate: false, commits: [] })
      assert.include(messageOf(await upload("t0ken", "ada/public")), "ada/public is public already")
      assert.deepEqual(hub.repositories.get("ada/public")?.commits, [])
    }))

  it("gives up a hub that cannot be reached after a few attempts", async () => {
    // Nothing listens on port 1.
    const variables = ConfigProvider.fromUnknown({ HF_ENDPOINT: "http://127.0.0.1:1", HF_TOKEN: "t0ken" })
    const upload = uploadModel({ id: "ada/model", isPrivate: true, summary: "Add a policy", files }).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, variables),
      Effect.provideService(ServerRetries, {
        maxRetries: 5,
        startingDelay: 0,
        backoffFactor: 1,
        maxDelay: 0,
        jitter: 0,
      }),
    )
    assert.match(
      messageOf(await Effect.runPromiseExit(upload)),
      /^no answer after 3 attempts; last failure: http:\/\/127\.0\.0\.1:1\/api\/repos\/create cannot be reached: .+; check the network and HF_ENDPOINT, or try again later$/,
    )
  })

  it("hides the token in a refusal of a large file", () =>
    withHub(async (hub, upload) => {
      hub.faults.objects = true
      const message = messageOf(await upload("t0ken", "ada/model"))
      assert.include(message, "no room for Bearer <redacted> and <redacted>")
    }))
})

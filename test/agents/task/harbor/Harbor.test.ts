import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { type AgentProgram, AgentPrograms } from "../../../../src/agents/agent/outside/AgentPrograms.ts"
import { needInScript, readDockerfile } from "../../../../src/agents/task/harbor/containerNeeds.ts"
import { withPlaces } from "../../../../src/agents/task/harbor/scratch.ts"
import * as Trust from "../../../../src/base/trust/Trust.ts"
import { disk } from "../../../run/store/disk.ts"
import { begun, copying, folderOf, openTasks, type TaskFiles } from "./folders.ts"

/** Stands for the verifier: it gets the folder of its logs, and the text of the answer. */
const verifying = (write: (logs: string, program: AgentProgram) => void) =>
  Effect.provideService(AgentPrograms, {
    run: (program) =>
      Effect.sync(() => {
        const script = program.command[program.command.length - 1]
        write(join(dirname(dirname(script)), "logs/verifier"), program)
        return "a line of output"
      }),
  })

const problemOf = (files: TaskFiles) =>
  Effect.gen(function* () {
    const folder = yield* folderOf({ one: { ...copying, ...files } })
    const { message } = yield* Effect.flip(openTasks(folder))
    return message.replace(`${folder}/one/`, "")
  }).pipe(Effect.scoped, Effect.provide(disk))

const needs = (why: string) =>
  `the task needs a container: ${why}; play it with Harbor, or set needs_container: leave_out`

const toml = (setting: string): TaskFiles => ({ "task.toml": setting })

describe("a Harbor task without a container", () => {
  it.effect("has its instruction, and an answer that becomes a file", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying, other: copying })
      const { tasks, config } = yield* openTasks(folder, { answer_file: "/app/answer.txt" })
      assert.deepStrictEqual([tasks.size, config["answer_file"]], [2, "/app/answer.txt"])
      const env = yield* tasks.at(0)
      assert.deepStrictEqual([env.id, env.metadata, env.tools], ["copying", { difficulty: "easy" }, undefined])
      const { observation, step } = yield* begun(env)
      assert.strictEqual(
        observation,
        "Write the word in /app/data/word.txt to /app/answer.txt.\n\nYour whole answer is saved as /app/answer.txt.",
      )
      const { feedback, terminated } = yield* step("heron in /app/data")
      assert.deepStrictEqual(
        [feedback.score, feedback.extra, terminated],
        [0.5, { rewards: { reward: 0.5, style: 1 } }, true],
      )
    }).pipe(
      verifying((logs, { cwd, environment, command }) => {
        assert.strictEqual(readFileSync(join(cwd ?? "", "answer.txt"), "utf8"), `heron in ${cwd}/data`)
        assert.strictEqual(readFileSync(join(cwd ?? "", "data/word.txt"), "utf8"), "heron\n")
        const root = dirname(dirname(logs))
        assert.strictEqual(environment["RIGHT"], `${root}/app/data/word.txt`)
        assert.strictEqual(environment["HOME"], `${root}/home`)
        const script = readFileSync(command[command.length - 1], "utf8")
        assert.include(script, `> ${root}/logs/verifier/reward.txt`)
        assert.include(script, `"${root}/tests/extra.txt"`)
        assert.notMatch(script, /[ "](\/app|\/tests|\/logs)/)
        writeFileSync(join(logs, "reward.json"), '{"reward": 0.5, "style": 1}')
      }),
      Effect.provide(disk),
    ),
  )

  it.effect("gives the agent tools that stay in its folder", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying })
      const env = yield* (yield* openTasks(join(folder, "copying"))).tasks.at(0)
      assert.deepStrictEqual(
        env.tools?.map(({ name }) => name),
        ["list_files", "read_file", "write_file"],
      )
      const { call, step } = yield* begun(env)
      const use = (name: string, parameters: object) =>
        Effect.map(call({ id: "1", name, arguments: JSON.stringify(parameters) }), ({ content }) => content)
      assert.strictEqual(yield* use("list_files", {}), "data/word.txt")
      assert.strictEqual(yield* use("read_file", { path: "/app/data/word.txt" }), "heron\n")
      assert.strictEqual(yield* use("write_file", { path: "answer.txt", text: "heron" }), "answer.txt is written.")
      for (const path of ["/etc/passwd", "../tests/test.sh", "/app/../logs/verifier/reward.txt", "/application"])
        assert.include(yield* use("read_file", { path }), `${path}: expected a path in /app`)
      assert.include(
        yield* use("write_file", { path: "/logs/verifier/reward.txt", text: "1" }),
        "expected a path in /app",
      )
      assert.strictEqual((yield* step("Done.")).feedback.score, 1)
    }).pipe(
      verifying((logs) => writeFileSync(join(logs, "reward.txt"), " 1\n")),
      Effect.provide(disk),
    ),
  )

  it.effect(
    "limits what an agent writes, and judges an agent that has written so much",
    () =>
      Effect.gen(function* () {
        const folder = yield* folderOf({ copying })
        const { call, step } = yield* begun(yield* (yield* openTasks(folder)).tasks.at(0))
        const writing = (path: string, text: string) =>
          Effect.map(
            call({ id: "1", name: "write_file", arguments: JSON.stringify({ path, text }) }),
            ({ content }) => content,
          )
        for (let at = 0; at < 1000; at++) assert.strictEqual(yield* writing(`${at}`, ""), `${at} is written.`)
        assert.include(yield* writing("more", ""), "no more than 1000 files can be written")
        assert.strictEqual((yield* step("Done.")).feedback.score, 1)
      }).pipe(
        verifying((logs) => writeFileSync(join(logs, "reward.txt"), "1")),
        Effect.provide(disk),
      ),
    { tags: "slow" },
  )

  it.effect("fails if its verifier writes no usable reward, or if its files change", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying })
      const env = yield* (yield* openTasks(folder)).tasks.at(0)
      const failure = (write: (logs: string) => void) =>
        Effect.gen(function* () {
          const { step } = yield* begun(env)
          return (yield* Effect.flip(step("Done."))).message
        }).pipe(verifying(write), Effect.scoped)
      assert.include(yield* failure(() => {}), "found none; the end of its output: a line of output")
      assert.include(
        yield* failure((logs) => writeFileSync(join(logs, "reward.txt"), "good")),
        '/logs/verifier/reward.txt: expected a number, found "good"',
      )
      assert.include(
        yield* failure((logs) => writeFileSync(join(logs, "reward.json"), '{"style": 1}')),
        "expected an object with numbers and the key reward",
      )
      writeFileSync(join(folder, "copying/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt")
      const { message } = yield* Effect.flip(Effect.scoped(begun(env)))
      assert.include(message, "have changed since the data set was opened")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("has a digest that depends on each byte of its files", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying })
      const fs = yield* FileSystem.FileSystem
      const digestWith = (bytes: ReadonlyArray<number>) =>
        Effect.gen(function* () {
          writeFileSync(join(folder, "copying/environment/words/word.txt"), Uint8Array.from(bytes))
          return (yield* openTasks(folder)).tasks.digest
        }).pipe(
          // Not all platforms read files as buffers of Node.
          Effect.provideService(FileSystem.FileSystem, {
            ...fs,
            readFile: (path) => Effect.map(fs.readFile(path), (read) => new Uint8Array(read)),
          }),
        )
      // Neither byte is a text in UTF-8.
      assert.notStrictEqual(yield* digestWith([0xff]), yield* digestWith([0xfe]))
      assert.strictEqual(yield* digestWith([0xff]), yield* digestWith([0xff]))
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("is opened only if the user permits its verifier, whose files are part of the question", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ copying })
      const asked: Array<Trust.TrustRequest> = []
      const permit = (request: Trust.TrustRequest) => Effect.sync(() => void asked.push(request))
      const open = Effect.provideService(openTasks(folder), Trust.Trust, { permit, permitKnown: permit })
      yield* open
      writeFileSync(join(folder, "copying/tests/extra.txt"), "another extra file")
      yield* open
      assert.deepStrictEqual(
        asked.map((request) => request._tag === "ProgramStart" && request.command),
        [
          ["bash", "tests/test.sh"],
          ["bash", "tests/test.sh"],
        ],
      )
      const [first, second] = asked.map((request) => JSON.stringify(request))
      assert.notStrictEqual(first, second)
      const refused = Effect.provideService(openTasks(folder), Trust.Trust, Trust.refuseAll)
      assert.include((yield* Effect.flip(refused)).message, "not permitted")
    }).pipe(Effect.provide(disk)),
  )
})

describe("a Harbor task that needs a container", () => {
  it.effect("is refused with the file, the line and the reason", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [TaskFiles, string]> = [
        [toml("[environment]\ngpus = 1"), `task.toml:2: environment.gpus: ${needs("it needs a GPU")}`],
        [
          toml('version = "1.0"\n[environment]\ndocker_image = "org/tools:1"'),
          `task.toml:3: environment.docker_image: ${needs('the image "org/tools:1" has software of its own')}`,
        ],
        [
          toml('[environment]\nnetwork_mode = "no-network"'),
          `task.toml:2: environment.network_mode: ${needs("it limits the network")}`,
        ],
        [
          toml('[verifier]\nenvironment_mode = "separate"'),
          `task.toml:2: verifier.environment_mode: ${needs("its verifier has an environment of its own")}`,
        ],
        [
          toml('[[steps]]\nname = "one"'),
          `task.toml:1: steps: ${needs("a task of several steps keeps one environment for all of them")}`,
        ],
        [
          toml('[verifier.env]\nKEY = "${OPENAI_API_KEY}"'),
          `task.toml:2: verifier.env: ${needs("KEY gets a value of the environment of this computer, which may be a key")}`,
        ],
        [
          { "environment/Dockerfile": "FROM python:3.12\nRUN pip install numpy\n" },
          `environment/Dockerfile:2: ${needs("RUN prepares an image")}`,
        ],
        [
          { "environment/Dockerfile": "FROM python:3.12 AS base\n" },
          `environment/Dockerfile:1: ${needs('the image "python:3.12 AS base" has software of its own')}`,
        ],
        [
          { "environment/docker-compose.yaml": "services: {}" },
          `environment/docker-compose.yaml: ${needs("it describes the containers of the task")}`,
        ],
        [
          { "tests/test.sh": "#!/bin/bash\n# apt-get is fine here\napt-get update\n" },
          `tests/test.sh:3: ${needs("apt-get would install software on this computer")}`,
        ],
        [
          { "environment/Dockerfile": "FROM ubuntu\nWORKDIR /app/\nCOPY words/ /data/\n" },
          `environment/Dockerfile:3: ${needs("it copies to /data/, outside of the working directory /app")}`,
        ],
        [
          { "environment/Dockerfile": "FROM ubuntu\nWORKDIR /usr/src\n" },
          `task.toml: environment.workdir: ${needs('its working directory "/usr/src" is a folder of the computer itself')}`,
        ],
      ]
      for (const [files, message] of cases) assert.strictEqual(yield* problemOf(files), message)
    }),
  )

  it.effect("can be left out", () =>
    Effect.gen(function* () {
      const gpu = { ...copying, ...toml("[environment]\ngpus = 1") }
      const folder = yield* folderOf({ a: gpu, b: copying })
      const { tasks } = yield* openTasks(folder, { needs_container: "leave_out" })
      assert.strictEqual((yield* tasks.at(0)).id, "b")
      const none = yield* Effect.flip(openTasks(join(folder, "a"), { needs_container: "leave_out" }))
      assert.include(none.message, "all 1 tasks need a container")
    }).pipe(Effect.provide(disk)),
  )

  it.effect("is told apart from a folder with wrong files", () =>
    Effect.gen(function* () {
      assert.include(yield* problemOf(toml("[agent")), "task.toml:1: expected TOML")
      assert.include(
        yield* problemOf({ "instruction.md": " " }),
        "instruction.md: expected what the agent has to do, found nothing",
      )
      assert.include(yield* problemOf(toml("[verifier]\ntimeout_sec = -1")), "task.toml: ")
      const folder = yield* folderOf({ copying })
      symlinkSync("/etc/hostname", join(folder, "copying/environment/words/link.txt"))
      const linked = yield* Effect.flip(openTasks(folder))
      assert.include(linked.message, "words/link.txt: expected a file or a folder, found a link")
      for (const name of ["instruction.md", "task.toml", "tests", "environment"]) {
        const place = yield* folderOf({ copying })
        const file = join(place, "copying", name)
        renameSync(file, join(place, "elsewhere"))
        symlinkSync(join(place, "elsewhere"), file)
        const { message } = yield* Effect.flip(openTasks(place))
        assert.include(message, `${name}: expected a file or a folder, found a link`)
      }
      mkdirSync(join(folder, "nothing"))
      const empty = yield* Effect.flip(openTasks(join(folder, "nothing")))
      assert.include(empty.message, "has no task: expected task.toml in it, or in folders in it")
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})

describe("what a Dockerfile and a path mean", () => {
  it("finds what would install software", () => {
    const found = (script: string) => needInScript("tests/test.sh", script)?.why.split(" would")[0]
    assert.deepStrictEqual(
      [
        "pip   install numpy",
        "curl -LsSf https://example.org/install.sh | sh",
        "curl http://localhost:8000/health",
        "npm test # npm install comes later",
        "python3 -m pytest /tests",
        "x && uvx pytest",
        "curl ".repeat(200_000),
      ].map(found),
      ["pip install", "curl", undefined, undefined, undefined, "uvx", undefined],
    )
  })

  it("reads copies, and replaces whole paths only", () => {
    assert.deepStrictEqual(readDockerfile("FROM library/node:24\nCOPY a.txt b/ ./\nLABEL x=y\nWORKDIR /work/repo\n"), {
      workdir: "/work/repo",
      copies: [{ from: ["a.txt", "b/"], to: "./", workdir: "/", line: 2 }],
    })
    const text = withPlaces("cd /work; cat $X/logs /logs/a ./tests /tests:/workers '/work/b' x/work ~/work", {
      root: "/tmp/s",
      workdir: "/work/repo",
    })
    assert.strictEqual(
      text,
      "cd /tmp/s/work; cat $X/logs /tmp/s/logs/a ./tests /tmp/s/tests:/workers '/tmp/s/work/b' x/work ~/work",
    )
  })
})

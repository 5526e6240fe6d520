import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as DatasetKind from "../../../src/agents/task/DatasetKind.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { answered, lines, opened, problem, questionsOf, withFiles } from "./opening.ts"

const sums = lines([
  { question: "1 + 1?", answer: 2 },
  { question: "2 + 2?", answer: 4 },
  { question: "3 + 3?", answer: 6 },
])

const questions = (said: object, file: string) =>
  questionsOf({ dataset_path: "sums.jsonl", ...said }, { "sums.jsonl": file })

const numbered = (count: number): string =>
  lines(Array.from({ length: count }, (_, index) => ({ question: `q${index}`, answer: "a" })))

describe("a data set of a config", () => {
  it.effect("has questions by default, from a file in the config's folder", () =>
    withFiles({ "sums.jsonl": sums }, (baseDir) =>
      Effect.gen(function* () {
        const { type, tasks } = yield* Datasets.open({ dataset_path: "sums.jsonl", task_type: "numeric" }, { baseDir })
        assert.strictEqual(type, "qa")
        assert.strictEqual(tasks.size, 3)
        assert.strictEqual(tasks.name, "sums")
        const env = yield* tasks.at(1)
        assert.deepStrictEqual([env.id, env.type], ["qa-2", "qa"])
        assert.deepStrictEqual(yield* answered(env, "It is 4."), {
          question: "2 + 2?",
          feedback: { score: 1, target: "4", message: "Correct." },
          terminated: true,
          observation: null,
        })
        assert.deepStrictEqual((yield* answered(env, "five?")).feedback, {
          score: 0,
          target: "4",
          message: "Incorrect: there is no number in it. Your answer was: five?. The answer is: 4",
        })
      }),
    ),
  )

  it.effect("is named after its file, without folder and extension, also with an absolute path", () =>
    withFiles({ "sums.v2.jsonl": sums }, (baseDir) =>
      Effect.gen(function* () {
        for (const path of ["sums.v2.jsonl", "./sums.v2.jsonl", `${baseDir}/sums.v2.jsonl`]) {
          const { tasks } = yield* Datasets.open({ dataset_path: path }, { baseDir })
          assert.strictEqual(tasks.name, "sums.v2", path)
        }
      }),
    ),
  )

  it.effect("can be in the config itself, with keys in either spelling, except those of the data", () =>
    Effect.gen(function* () {
      const item = { theQuestion: "Who?", The_answer: "me", ID_code: 7, themeName: { sub_key: 1, subKey: 2 } }
      const said = {
        items: [item],
        questionField: "theQuestion",
        answer_field: "The_answer",
        id_field: "ID_code",
        meta_fields: ["themeName"],
      }
      const { tasks, config } = yield* opened(said)
      const env = yield* tasks.at(0)
      assert.deepStrictEqual(
        [env.id, env.metadata],
        ["7", { task_type: "exact", themeName: { sub_key: 1, subKey: 2 } }],
      )
      assert.strictEqual((yield* answered(env, "Me")).feedback.score, 1)
      assert.deepStrictEqual(config["items"], [item])
    }),
  )

  it.effect("returns its effective config, which opens the same data set", () =>
    Effect.gen(function* () {
      const said = { questionField: "q", answerField: "a", items: [{ q: "Who?", a: "me", aB: 1 }], shuffle: true }
      const first = yield* opened(said)
      assert.deepStrictEqual(first.config, {
        type: "qa",
        dataset_path: null,
        hf_dataset: null,
        hf_subset: null,
        hf_revision: null,
        split: "train",
        input_field: "q",
        target_field: "a",
        choices_field: null,
        id_field: null,
        meta_fields: [],
        instruction_template: null,
        max_samples: null,
        shuffle: true,
        seed: 42,
        verbose: true,
        task_type: "exact",
        env_class: null,
        items: [{ q: "Who?", a: "me", aB: 1 }],
      })
      const again = yield* opened(first.config)
      assert.deepStrictEqual(again.config, first.config)
      assert.strictEqual(again.tasks.digest, first.tasks.digest)
      assert.deepStrictEqual(yield* Datasets.decode(said), first.config)
    }),
  )

  it.effect("is in order, or shuffled by its seed, up to max_samples", () =>
    Effect.gen(function* () {
      const file = numbered(20)
      const all = yield* questions({}, file)
      assert.deepStrictEqual(
        all,
        Array.from({ length: 20 }, (_, index) => `q${index}`),
      )
      assert.deepStrictEqual(yield* questions({ max_samples: 5 }, file), all.slice(0, 5))
      assert.deepStrictEqual(yield* questions({ max_samples: 50 }, file), all)
      assert.deepStrictEqual(yield* questions({ max_samples: 0 }, file), [])
      const shuffled = yield* questions({ shuffle: true }, file)
      assert.notDeepEqual(shuffled, all)
      assert.sameMembers([...shuffled], [...all])
      assert.deepStrictEqual(yield* questions({ shuffle: true, seed: 42 }, file), shuffled)
      assert.notDeepEqual(yield* questions({ shuffle: true, seed: 43 }, file), shuffled)
      assert.deepStrictEqual(yield* questions({ shuffle: true, max_samples: 5 }, file), shuffled.slice(0, 5))
    }),
  )

  it.effect("has no task beyond its end, shuffled and limited or not", () =>
    Effect.gen(function* () {
      const messages = yield* withFiles({ "sums.jsonl": sums }, (baseDir) =>
        Effect.forEach([{}, { max_samples: 1 }, { shuffle: true, max_samples: 1 }], (said) =>
          Effect.gen(function* () {
            const { tasks } = yield* Datasets.open({ dataset_path: "sums.jsonl", ...said }, { baseDir })
            return (yield* Effect.flip(tasks.at(tasks.size))).message
          }),
        ),
      )
      assert.deepStrictEqual(
        messages,
        messages.map(() => "sums.jsonl: there is no record 3 of 3"),
      )
    }),
  )

  it.effect("has a digest of its contents and how they are read, not of its path", () =>
    Effect.gen(function* () {
      const digest = (said: object, files = { "a.jsonl": sums }) =>
        Effect.map(opened({ dataset_path: "a.jsonl", ...said }, files), ({ tasks }) => tasks.digest)
      const first = yield* digest({})
      assert.match(first, /^[0-9a-f]{64}$/)
      assert.strictEqual(yield* digest({ verbose: false, type: "qa" }), first)
      assert.strictEqual(
        yield* Effect.map(opened({ dataset_path: "b.jsonl" }, { "b.jsonl": sums }), ({ tasks }) => tasks.digest),
        first,
      )
      const others = yield* Effect.all([
        digest({}, { "a.jsonl": sums.replace("6", "7") }),
        digest({ task_type: "numeric" }),
        digest({ shuffle: true }),
        digest({ shuffle: true, seed: 1 }),
        digest({ max_samples: 2 }),
      ])
      assert.strictEqual(new Set([first, ...others]).size, 6)
    }),
  )

  it.effect("is refused with one line that says what to do", () =>
    Effect.gen(function* () {
      const item = { question: "?", answer: "!" }
      const said: ReadonlyArray<readonly [unknown, string]> = [
        ["sums.jsonl", `conf.yaml: expected a data set, found "sums.jsonl"`],
        [{ items: [item], taks_type: "exact" }, `conf.yaml: unknown key "taks_type"; did you mean "task_type"?`],
        [{ items: [item], type: "qaa" }, `conf.yaml: type: unknown kind of data set "qaa"; did you mean "qa"?`],
        [{ type: "alfworld", split: "eval_out_of_distribution" }, "conf.yaml: base_config_path: missing key"],
        [
          { items: [item], task_type: "numerical" },
          `conf.yaml: task_type: expected "exact" | "f1" | "numeric" | "mcq" | "custom", found "numerical"; did you mean "numeric"?`,
        ],
        [
          { items: [item], max_samples: -1 },
          "conf.yaml: max_samples: expected a value greater than or equal to 0, found -1",
        ],
        [{}, "conf.yaml: dataset_path: expected a file, items or hf_dataset, found none of them"],
        [{ items: [item], dataset_path: "a.jsonl" }, "conf.yaml: items: expected dataset_path or items, found both"],
        [{ items: [] }, "conf.yaml: items: expected at least one item, found none"],
        [
          { items: [item], question_field: "q", input_field: "question" },
          `conf.yaml: question_field: expected one of it and input_field, which are the same, found "q" and "question"`,
        ],
        [
          { items: [item, { Question: "?", answer: "!" }] },
          `conf.yaml: items[1]: expected a field "question", found "Question", "answer"; did you mean "Question"? (set input_field to choose another)`,
        ],
      ]
      for (const [config, message] of said) assert.strictEqual(yield* problem(config), message)
    }),
  )

  it.effect("is named by its place in a larger file", () =>
    Effect.gen(function* () {
      const from = {
        source: "conf.yaml",
        prefix: ["trainDataset"],
        sources: new Map([["trainDataset.taskType", "--set"]]),
      }
      const wrong = (said: unknown) => Effect.map(Effect.flip(Datasets.decode(said, from)), ({ message }) => message)
      assert.strictEqual(
        yield* wrong({ tsk: 1, dataset_path: "a" }).pipe(Effect.map((message) => message.split(";")[0])),
        `conf.yaml: unknown key "train_dataset.tsk"`,
      )
      assert.strictEqual(
        yield* wrong({ taskType: 1 }),
        `--set: train_dataset.task_type: expected "exact" | "f1" | "numeric" | "mcq" | "custom", found 1`,
      )
      assert.strictEqual(yield* wrong(7), "conf.yaml: train_dataset: expected a data set, found 7")
    }),
  )

  it.effect("can be of a custom kind, also in place of a built-in one", () =>
    Effect.gen(function* () {
      const env = (id: string) =>
        TextEnv.make({
          id,
          type: "riddle",
          begin: () => ({ state: null, observation: "?" }),
          step: () => ({
            state: null,
            observation: null,
            feedback: { score: 1, target: null, message: "" },
            terminated: true,
          }),
        })
      const own = (type: string) =>
        DatasetKind.make({
          type,
          schema: Schema.Struct({ type: Schema.Literal(type), howMany: Schema.Int }),
          open: ({ howMany }) =>
            Effect.succeed(
              TaskSet.of(
                "riddles",
                Array.from({ length: howMany }, (_, index) => env(`${type}-${index}`)),
              ),
            ),
        })
      const kinds = [...Datasets.builtIn, own("riddles"), own("qa")]
      const ids = (said: object) =>
        opened(said).pipe(
          Effect.flatMap(({ tasks, config }) => Effect.map(tasks.at(1), ({ id }) => ({ id, config }))),
          Effect.provideService(Datasets.Kinds, kinds),
        )
      assert.deepStrictEqual(yield* ids({ type: "riddles", how_many: 2 }), {
        id: "riddles-1",
        config: { type: "riddles", how_many: 2 },
      })
      assert.strictEqual((yield* ids({ howMany: 2 })).id, "qa-1")
      const message = yield* Effect.provideService(problem({ type: "riddels" }), Datasets.Kinds, kinds)
      assert.match(message, /did you mean "riddles"\?$/)
    }),
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { reportingFailures } from "../../../src/agents/task/feedbackFailures.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import type { LmRequest } from "../../../src/agents/lm/Chat.ts"
import type { LmService } from "../../../src/agents/lm/Lm.ts"
import { shownKey } from "../../../src/base/config/secretFields.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import { disk } from "../../run/store/disk.ts"
import { answered, lines, opened, problem, questionsOf, scoresOf, tasksOf } from "./opening.ts"

const square = { input: "Solve x^2 = 4.", target: "{-2, 2}" }

const feedbackOn = (said: object, answer: string) =>
  Effect.flatMap(tasksOf(said), ([env]) => Effect.map(answered(env, answer), ({ feedback }) => feedback))

describe("mathematical problems", () => {
  it.effect("have their own default fields, split and comparison", () =>
    Effect.gen(function* () {
      const { type, config } = yield* opened({ type: "omega_math", items: [square] })
      assert.strictEqual(type, "omega_math")
      assert.deepInclude(config, {
        input_field: "input",
        target_field: "target",
        split: "test",
        eval_mode: "auto",
        eval_tolerance: 1e-6,
        expect_boxed: false,
        output_type: "text",
        feedback_type: "final_answer",
        feedback_lm_config: null,
        enable_llm_feedback: true,
        num_subsets: null,
        samples_per_subset: null,
      })
      const [env] = yield* tasksOf({ type: "omega_math", items: [square] })
      assert.deepStrictEqual([env.id, env.type], ["omega_math-1", "omega_math"])
      assert.deepStrictEqual(env.metadata, { subset: "default", eval_mode: "auto" })
      assert.deepStrictEqual((yield* answered(env, "\\boxed{\\{2, -2\\}}")).feedback, {
        score: 1,
        target: "{-2, 2}",
        message: "Correct.",
      })
    }),
  )

  it.effect("are recognised by eval_mode if the type is missing", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* opened({ eval_mode: "auto", items: [square] })).type, "omega_math")
      assert.strictEqual(
        (yield* opened({ type: "qa", input_field: "input", target_field: "target", items: [square] })).type,
        "qa",
      )
    }),
  )

  it.effect("are compared by eval_mode, within eval_tolerance, and boxed if expected", () =>
    Effect.gen(function* () {
      const item = (target: unknown) => ({ input: "?", target })
      const scores = (said: object, target: unknown, ...answers: ReadonlyArray<string>) =>
        scoresOf({ type: "omega_math", ...said }, item(target), ...answers)
      assert.deepStrictEqual(yield* scores({ eval_mode: "numeric_tol" }, 3, "3", "3.01", "x"), [1, 0, 0])
      assert.deepStrictEqual(yield* scores({ eval_tolerance: 0.1 }, 3, "3", "3.01", "3.2"), [1, 1, 0])
      assert.deepStrictEqual(yield* scores({ eval_mode: "tuple_tol" }, "{1,2}", "(1,2)"), [0])
      assert.deepStrictEqual(yield* scores({ eval_mode: "set_tol" }, "1, 2", "2, 1", "{2,1}", "1"), [1, 1, 0])
      assert.deepStrictEqual(yield* scores({ eval_mode: "matrix_tol" }, "[[1,2],[3,4]]", "[[1,2],[3,4]]", "1"), [1, 0])
      assert.deepStrictEqual(yield* scores({ eval_mode: "expr_equiv" }, "(x+1)^2", "x^2+2x+1", "x^2"), [1, 0])
      assert.deepStrictEqual(yield* scores({ expect_boxed: true }, "3", "\\boxed{3}", "3", "it is 3"), [1, 1, 0])
      assert.deepStrictEqual(yield* scores({ expect_boxed: false }, "3", "it is 3"), [1])
    }),
  )

  it.effect("may be conversations up to the question, with the usual field names", () =>
    Effect.gen(function* () {
      const asked = [{ role: "user", content: "2 + 2?" }]
      const items = [
        { input: asked, target: 4 },
        { input: [...asked, { role: "assistant", content: "It is 4." }], target: 4 },
        { input: [{ role: "system", content: "Be brief." }, ...asked], target: 4 },
        { messages: asked, ground_truth: "4" },
      ]
      const seen = yield* Effect.forEach(yield* tasksOf({ type: "omega_math", items }), (env) => answered(env, "4"))
      assert.deepStrictEqual(
        seen.map(({ question }) => question),
        ["2 + 2?", "2 + 2?", "system: Be brief.\n\nuser: 2 + 2?", "2 + 2?"],
      )
      assert.isTrue(seen.every(({ feedback }) => feedback.score === 1))
      const alone = [{ role: "assistant", content: "4" }]
      assert.match(
        yield* problem({ type: "omega_math", items: [{ input: alone, target: 4 }] }),
        /^conf\.yaml: items\[0\]: "input": expected text or a list of \{ role, content \} with one of the user, found \[/,
      )
    }),
  )

  it.effect("are answered in JSON if output_type is json, which the question says", () =>
    Effect.gen(function* () {
      const said = { type: "omega_math", output_type: "json", items: [{ input: "1 + 1?", target: "2" }] }
      const [env] = yield* tasksOf(said)
      const { question } = yield* answered(env, "")
      assert.match(question, /^1 \+ 1\?\n\nAnswer with one JSON object .*final_answer.*rationale/)
      const score = (answer: string) => Effect.map(feedbackOn(said, answer), (feedback) => feedback.score)
      assert.strictEqual(yield* score('{"final_answer": "2", "rationale": "1 and 1"}'), 1)
      assert.strictEqual(yield* score('```json\n{"final_answer": 2, "rationale": "so"}\n```'), 1)
      assert.strictEqual(yield* score(' ```\n\n{"final_answer": 2}```\n'), 1)
      assert.strictEqual(yield* score(`\`\`\`${"\n".repeat(100_000)}x`), 0)
      assert.strictEqual(yield* score('{"final_answer": "3", "rationale": "2"}'), 0)
      for (const answer of ["2", '{"answer": 2}', '{"final_answer": 2', "[2]"]) {
        const feedback = yield* feedbackOn(said, answer)
        assert.strictEqual(feedback.score, 0, answer)
        assert.match(feedback.message, /^Incorrect: expected a JSON object with final_answer and rationale\./)
      }
    }),
  )

  it.effect("show the solution after a wrong answer", () =>
    Effect.gen(function* () {
      const solution = { final_answer: "{-2, 2}", rationale: "Take both roots of 4." }
      const said = (ground_truth_solution: unknown) => ({
        type: "omega_math",
        feedback_type: "ground_truth_solution",
        items: [{ ...square, ground_truth_solution }],
      })
      const wrong = "Incorrect. Your answer was: {2}. The answer is: {-2, 2}"
      for (const given of [solution, JSON.stringify(solution), solution.rationale]) {
        assert.deepStrictEqual(yield* feedbackOn(said(given), "{2}"), {
          score: 0,
          target: "{-2, 2}",
          message: `${wrong}\nA solution: Take both roots of 4.`,
        })
        assert.strictEqual((yield* feedbackOn(said(given), "{2, -2}")).message, "Correct.")
      }
      assert.strictEqual((yield* feedbackOn(said(undefined), "{2}")).message, wrong)
      assert.strictEqual(
        (yield* feedbackOn({ ...said(solution), feedback_type: "final_answer" }, "{2}")).message,
        wrong,
      )
    }),
  )

  it.effect("can be limited to some subsets, and the first tasks of each", () =>
    Effect.gen(function* () {
      const file = lines(
        ["a", "b", "a", "c", "b", "a", "c", "b"].map((setting_key, index) => ({
          input: `${setting_key}${index}`,
          target: "1",
          setting_key,
        })),
      )
      const kept = (said: object) =>
        questionsOf({ type: "omega_math", dataset_path: "o.jsonl", ...said }, { "o.jsonl": file })
      assert.lengthOf(yield* kept({}), 8)
      assert.deepStrictEqual(yield* kept({ num_subsets: 2 }), ["a0", "b1", "a2", "b4", "a5", "b7"])
      assert.deepStrictEqual(yield* kept({ samples_per_subset: 1 }), ["a0", "b1", "c3"])
      assert.deepStrictEqual(yield* kept({ num_subsets: 2, samples_per_subset: 2 }), ["a0", "b1", "a2", "b4"])
      assert.deepStrictEqual(yield* kept({ num_subsets: 5, max_samples: 3 }), ["a0", "b1", "a2"])
      assert.deepStrictEqual(yield* kept({ num_subsets: 0 }), [])
      const shuffled = yield* kept({ shuffle: true })
      const first = shuffled[0][0]
      assert.deepStrictEqual(
        yield* kept({ shuffle: true, num_subsets: 1 }),
        shuffled.filter((name) => name.startsWith(first)),
      )
    }),
  )
})

describe("feedback of a model", () => {
  const said = {
    type: "omega_math",
    feedback_type: "llm_feedback_from_ground_truth_solution",
    feedback_lm_config: { model: "scripted:tutor", temperature: 0.7 },
    items: [{ ...square, ground_truth_solution: "Take both roots of 4." }],
  }

  /** The feedback on an answer, and what the model was asked. */
  const told = (config: object, answer: string, reply: LmService["complete"]) =>
    Effect.gen(function* () {
      const requests: Array<LmRequest> = []
      const lm: LmService = {
        complete: (request) => {
          requests.push(request)
          return reply(request)
        },
      }
      const openLm = () => Effect.succeed(lm)
      const { tasks } = yield* Effect.provide(Datasets.open(config, { baseDir: ".", openLm }), disk)
      const { feedback } = yield* answered(yield* tasks.at(0), answer)
      return { feedback, requests }
    })

  const saying = (content: string) => () =>
    Effect.succeed({
      content,
      toolCalls: [],
      finishReason: "stop" as const,
      usage: { inputTokens: 1, outputTokens: 1, reasoningTokens: 0 },
      tokens: null,
      model: "scripted:tutor",
      attempts: 1,
    })

  it.effect("is requested after a wrong answer, with the problem and its solution", () =>
    Effect.gen(function* () {
      const { feedback, requests } = yield* told(said, "{2}", saying(" Think of the sign. "))
      assert.deepStrictEqual(feedback, {
        score: 0,
        target: "{-2, 2}",
        message: "Incorrect. Think of the sign.",
        extra: {
          template_message: "Incorrect. Your answer was: {2}. The answer is: {-2, 2}",
          feedback_model: "scripted:tutor",
        },
      })
      assert.lengthOf(requests, 1)
      const [{ model, temperature, messages }] = requests
      assert.deepStrictEqual([model, temperature], ["scripted:tutor", 0.7])
      // The files of `cache: record` are found by the whole request, so the text of this prompt must not change by accident.
      assert.strictEqual(
        messages[0].content,
        "You teach mathematics. You are given a problem, how it is solved, and a student's answer, which is wrong. " +
          "In two or three sentences, tell the student where the answer went wrong and what to look at to get it right.",
      )
      assert.strictEqual(
        messages[1].content,
        "Problem:\nSolve x^2 = 4.\n\nRight answer:\n{-2, 2}\n\nSolution:\nTake both roots of 4.\n\nThe student's answer:\n{2}",
      )
    }),
  )

  it.effect("is not requested after a right answer, or if it is switched off", () =>
    Effect.gen(function* () {
      const right = yield* told(said, "{-2, 2}", saying("?"))
      assert.deepStrictEqual([right.feedback.message, right.requests.length], ["Correct.", 0])
      const off = yield* told({ ...said, enable_llm_feedback: false }, "{2}", saying("?"))
      assert.match(off.feedback.message, /A solution: Take both roots of 4\.$/)
      assert.lengthOf(off.requests, 0)
    }),
  )

  it.effect("is the solution if the model fails, with the reason", () =>
    Effect.gen(function* () {
      const error = new LmError({ model: "m", reason: "exhausted", attempts: 6, message: "m: gave up" })
      const reports: Array<string> = []
      const report = (message: string) => Effect.sync(() => void reports.push(message))
      const failing = told(said, "{2}", () => Effect.fail(error))
      const { feedback } = yield* reportingFailures(failing, report)
      yield* reportingFailures(Effect.andThen(failing, failing), report)
      yield* reportingFailures(told(said, "{2}", saying("Look.")), report)
      assert.deepStrictEqual(reports, [
        "the model that writes feedback failed once, and the feedback did without it: m: gave up",
        "the model that writes feedback failed 2 times, and the feedback did without it: m: gave up",
      ])
      assert.deepStrictEqual([feedback.score, feedback.extra], [0, { feedback_error: "m: gave up" }])
      assert.match(feedback.message, /A solution: Take both roots of 4\.$/)
      const silent = yield* told(said, "{2}", saying("  "))
      assert.match(silent.feedback.message, /A solution: Take both roots of 4\.$/)
    }),
  )

  it.effect("needs a model and a way to open it; the API key isn't written to the config", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* problem({ ...said, feedback_lm_config: null }),
        "conf.yaml: feedback_lm_config: expected a model for feedback_type: llm_feedback_from_ground_truth_solution, found null; set a model, or enable_llm_feedback: false",
      )
      assert.strictEqual(
        yield* problem(said),
        "conf.yaml: feedback_lm_config: this program opens no language models; set enable_llm_feedback: false",
      )
      const config = yield* Datasets.decode({ ...said, feedback_lm_config: { model: "m", api_key: "sk-secret" } })
      assert.notInclude(JSON.stringify(config), "sk-secret")
      assert.deepInclude(config["feedback_lm_config"], { model: "m", max_output_tokens: 2048, api_key: shownKey })
    }),
  )
})

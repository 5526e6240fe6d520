/** Attacks by files and answers that are small, but that a careless parser reads for hours, or unpacks to gigabytes. */
import { Effect } from "effect"
import { parseYaml } from "../../../src/base/config/yaml.ts"
import { jsonValue } from "../../../src/base/text/text.ts"
import { fieldsOf } from "../../../src/base/formats/csv.ts"
import { readTomlText } from "../../../src/base/formats/toml.ts"
import { decode } from "../../../src/base/formats/torch/torch.ts"
import { checkLimits } from "../../../src/rl/env/mujoco/limits.ts"
import { patternProblem } from "../../../src/base/tokens/slowPatterns.ts"
import { op, overlapping, zip } from "../../base/formats/torchFile.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const door = "models"

/** Returns the message with which a function refuses its input, if it refuses it in time and without much memory. */
const refusal = async (read: () => unknown): Promise<string> => {
  const start = performance.now()
  const before = process.memoryUsage().rss
  let message = ""
  try {
    const result = read()
    message = typeof result === "string" ? result : ""
  } catch (error) {
    message = error instanceof Error ? error.message : String(error)
  }
  must(performance.now() - start < 10_000, "it took more than 10 s")
  must(process.memoryUsage().rss - before < 2 ** 30, "it took 1 GiB of memory")
  must(message !== "", "it was read")
  return message.slice(0, 100)
}

/** Sections of which each merges the one before ten times. */
const merges = Array.from({ length: 16 }, (_, level) => {
  const before = Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ")
  return `a${level}: &a${level} {${level === 0 ? "x: 1" : `!!merge <<: [${before}]`}}`
}).join("\n")

const yamlProblem = (text: string): string => {
  const document = parseYaml(text)
  return "problem" in document ? document.problem : ""
}

/** Models of MuJoCo that ask for a hundred million bodies in forms that only its own XML parser reads. */
const hiddenCopies = [
  "<mujoco><!X ' ><replicate count='100000000'/></mujoco>",
  "<?xml version='1.0\" ?><mujoco><replicate count='100000000'/></mujoco>",
  "<mujoco>< replicate count='100000000'/></mujoco>",
  "<mujoco><replicate offset='1 0 0'count='100000000'/></mujoco>",
  `<mujoco><replicate sep=" count='1' " count="100000000"/></mujoco>`,
  "<mujoco><replicate count='0'><replicate count='100000000'/></replicate></mujoco>",
]

export const parserAttacks: ReadonlyArray<Attack> = [
  {
    door,
    name: "models of MuJoCo that hide how many copies they ask for",
    attempt: async () => {
      for (const xml of hiddenCopies) await refusal(() => checkLimits("robot", { xml }))
      return `${hiddenCopies.length} models refused`
    },
  },
  {
    door: "runs",
    name: "a config whose merge keys copy each other, by a directive and by a tag",
    attempt: async () => {
      await refusal(() => yamlProblem(`%YAML 1.1\n---\n${merges.replaceAll("!!merge ", "")}`))
      return refusal(() => yamlProblem(merges))
    },
  },
  {
    door: "runs",
    name: "a TOML file of spaces and dots, and a CSV file of quotes",
    attempt: async () => {
      await refusal(() => JSON.stringify(fieldsOf('"\n",'.repeat(300_000), ",", 1)))
      const spaces = `a = 1\n${" ".repeat(1_000_000)}\n`
      await refusal(() => Effect.runSync(Effect.as(readTomlText(spaces, "orch.toml"), "read in one pass")))
      return refusal(
        () => Effect.runSync(Effect.flip(readTomlText(`${"a.".repeat(20_000)}b = 1`, "orch.toml"))).message,
      )
    },
  },
  {
    door,
    name: "an archive whose entries lie in each other, and a pickle of empty dicts",
    attempt: async () => {
      await refusal(() => decode(zip([["a/data.pkl", [0x80, 2, ...new Array<number>(2 ** 21).fill(op.emptyDict)]]])))
      return refusal(() => decode(overlapping(20_000)))
    },
  },
  {
    door,
    name: "an adapter whose expression of modules takes minutes for one name",
    attempt: () => refusal(() => patternProblem("^(?:([a-z0-9._]+)+!)$", 40)),
  },
  {
    door: "serve",
    name: "a body of 30 million brackets",
    attempt: () => refusal(() => jsonValue("[".repeat(30_000_000))),
  },
]

/**
 * Imitates the two models of `examples/agents/mails.yaml` for a server on this machine, since there is no API key in tests. Both
 * answer the same request in the same way, and make seeded mistakes as models do.
 *
 * - The model that sorts mails understands them, but follows a rule of the shop only if its prompt states it. It often explains
 *   its answer if it is not told otherwise, and now and then slips, rambles, declines, or says nothing at first.
 * - The model that reflects states the rules that the wrong answers reveal, at times too vaguely or too widely, and may forget
 *   an older one. Its new prompt stands in a code fence or without one, and some answers have none that can be used.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { stream } from "../../../src/base/rng/Rng.ts"
import type { Answer, Body, Fault, Options } from "../lm/server.ts"

interface Mail {
  readonly mail: string
  readonly answer: string
  readonly topic: string
  readonly rule: string
}

const examples = fileURLToPath(new URL("../../../examples/agents", import.meta.url))

const mailsIn = (file: string): ReadonlyArray<Mail> =>
  readFileSync(`${examples}/${file}`, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

const mails = [...mailsIn("mails.jsonl"), ...mailsIn("mails-test.jsonl")]

/** Draws a number from 0 to 1: the same for the same words. */
const chance = (...words: ReadonlyArray<string | number>): number => stream(1, "mails", ...words).uniform()

const choice = <A>(all: ReadonlyArray<A>, ...words: ReadonlyArray<string | number>): A =>
  all[Math.floor(chance(...words) * all.length)]

/** A rule of the shop: how a model states it, how that is recognised in a prompt, and a statement that helps nobody. */
interface Rule {
  readonly stated: ReadonlyArray<string>
  readonly known: RegExp
  readonly vague: string
}

const rules: Readonly<Record<string, Rule>> = {
  refund: {
    stated: [
      "Whoever wants money back (a refund) goes to billing/2, whatever was bought.",
      "A mail that asks for a refund or for money to be returned is always billing/2, even if something is broken or late.",
    ],
    known: /(refund|money)[^\n]*billing\/2/i,
    vague: "Think about who pays whom.",
  },
  delivery: {
    stated: ["Where a parcel or an order is to be delivered, such as a changed address, is orders/2."],
    known: /(parcel|deliver)[^\n]*orders\/2/i,
    vague: "Addresses matter.",
  },
  profile: {
    stated: ["Profiles, passwords, signing in and data on file are account/2, also without an order."],
    known: /(profile|password)[^\n]*account\/2/i,
    vague: "Consider the customer's data.",
  },
  rental: {
    stated: ["Everything about a rental (longer, shorter, other bicycle, who has it) is billing/2."],
    known: /rent[^\n]*billing\/2/i,
    vague: "Rentals differ from purchases.",
  },
  safety: {
    stated: [
      "Danger while riding or charging (brakes, forks, cracks, loose wheels, heat, smell of burning) is repairs/1.",
      "What can hurt somebody, e.g. a brake or a crack in the frame, is urgent: repairs/1.",
    ],
    known: /(brake|danger)[^\n]*repairs\/1/i,
    vague: "Take broken parts seriously.",
  },
  thanks: {
    stated: [
      "Thanks and good news without a question have priority 3, with the team that is thanked (repairs/3 or orders/3).",
    ],
    known: /(thank|praise)[^\n]*priority 3/i,
    vague: "Be friendly to friendly people.",
  },
  press: {
    stated: ["Press, jobs, schools and offers of other firms are other/3."],
    known: /(press|job)[^\n]*other\/3/i,
    vague: "Some mails are not from customers.",
  },
  stolen: {
    stated: ["A stolen bicycle is account/1, because its lock is then blocked in the app."],
    known: /stolen[^\n]*account\/1/i,
    vague: "Theft is a matter for the police.",
  },
  invoice: {
    stated: ["Invoices, double charges, vouchers, reminders and ways to pay are billing/2."],
    known: /(invoice|charge)[^\n]*billing\/2/i,
    vague: "Numbers must be right.",
  },
  hours: {
    stated: ["Opening hours, the way to the shop and what is there are other/3."],
    known: /opening hours[^\n]*other\/3/i,
    vague: "The shop is a place, too.",
  },
  plain: {
    stated: ["Other questions about repairs or orders have priority 2: repairs/2 or orders/2."],
    known: /priority 2/i,
    vague: "Most mails are ordinary.",
  },
}

const form = { line: "Write nothing else: the answer is one line such as orders/2.", known: /nothing else/i }
const tooWide = { line: "Complaints are always urgent: priority 1.", known: /complaints are always urgent/i }

const isKnown = (rule: string, prompt: string): boolean => rules[rule].known.test(prompt)

/** Returns the text of a message in the form of either protocol: a text, or a list of parts. */
const textOf = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => String(Object(part).text ?? "")).join("\n") : String(content)

/** Decides how the model sorts a mail with a prompt. */
const sorted = (prompt: string, { mail, answer, topic, rule }: Mail): string => {
  const [team, priority] = answer.split("/")
  if (chance("slip", prompt, mail) < (prompt.length > 2000 ? 0.15 : 0.06)) return choice(["other/2", "orders/1"], mail)
  const urgent = tooWide.known.test(prompt) && /n't|never|no |not /.test(mail) && chance("wide", mail) < 0.5
  if (isKnown(rule, prompt)) return `${team}/${urgent ? 1 : priority}`
  const known = chance("guess", mail) < 0.35
  return `${known ? team : topic}/${urgent ? 1 : choice(["2", "2", "3", "1"], "priority", mail)}`
}

/** Answers as the model that sorts mails. */
const sorter = ({ messages }: Body, before: number): Answer => {
  const prompt = messages.flatMap(({ role, content }) => (role === "system" ? [textOf(content)] : [])).join("\n")
  const asked = textOf(messages.at(-1)?.content)
  const found = mails.find(({ mail }) => asked.includes(mail))
  if (found === undefined) return { content: "Which mail do you mean?" }
  const { mail, rule } = found
  const answer = sorted(prompt, found)
  const kind = chance("kind", prompt, mail)
  if (kind < 0.01) return { content: "" }
  // An answer without any text is asked for again.
  if (before === 0 && kind < 0.03) return { content: null }
  if (rule === "stolen" && kind > 0.8)
    return { content: null, refusal: "I'm sorry, but I can't help with stolen goods." }
  if (kind > 0.995) return { content: "Let me think about this step by step. ".repeat(8), finish: "length" }
  if (form.known.test(prompt) || kind < 0.7) return { content: answer }
  return kind < 0.75
    ? { content: `\`\`\`\n${answer}\n\`\`\`` }
    : { content: `**Answer:** ${answer}\n\nThe customer writes about ${rule}, so I would pass the mail on.` }
}

/** Rewrites a prompt by the examples of a reflection, as well as the model can. */
const rewritten = (question: string, prompt: string, wrong: ReadonlyArray<string>): string => {
  const lines = prompt.split("\n")
  const before = lines.length
  for (const example of wrong) {
    const found = mails.find(({ mail }) => example.includes(mail))
    if (found === undefined) continue
    const { rule, answer } = found
    const isForm = example.includes(`ACTION: **Answer:** ${answer}`) || example.includes(`\`\`\`\n${answer}`)
    if (isForm && !form.known.test(prompt)) lines.push(form.line)
    if (isKnown(rule, lines.join("\n")) || lines.length >= before + 2) continue
    lines.push(chance("vague", question, rule) < 0.4 ? rules[rule].vague : choice(rules[rule].stated, question, rule))
  }
  if (lines.length > 3 && chance("forget", question) < 0.15)
    lines.splice(1 + Math.floor(chance("which", question) * 2), 1)
  if (chance("wide", question) < 0.1) lines.push(tooWide.line)
  return [...new Set(lines)].join("\n")
}

/** Answers as the model that reflects. */
const reflecting = ({ messages }: Body): Answer => {
  const question = textOf(messages.at(-1)?.content)
  const [, prompt = ""] = /The text now:\n\n```\n([^]*?)\n```\n\nThe examples/.exec(question) ?? []
  const wrong = question.split(/^Example \d+ /m).filter((example) => example.includes("Incorrect"))
  const text = rewritten(question, prompt, wrong)
  const fenced = `\`\`\`\n${text}\n\`\`\``
  const answers: ReadonlyArray<Answer> = [
    { content: "I looked at the examples, but see nothing to change.\n\n```\n```" },
    { content: `The text is right as it is:\n\n\`\`\`\n${prompt}\n\`\`\`` },
    { content: null, finish: "refusal" },
    { content: fenced.slice(0, fenced.length / 2), finish: "max_tokens" },
    { content: `\`\`\`\n${`${text}\n`.repeat(Math.ceil(100_001 / text.length))}\`\`\`` },
    { content: `\`\`\`\n${text}` },
    { content: text },
    { content: `Here is the new text.\n\n\`\`\`markdown\n${text}\n\`\`\`\n\nIt states what the feedback reveals.` },
  ]
  const usual = { content: `The assistant didn't know ${wrong.length} of the rules.\n\n${fenced}` }
  // With this number, the proof sees each of these answers at least once.
  return answers[Math.floor(chance("answer 4", question) * 18)] ?? usual
}

/** Makes a share of first tries fail, and the others take some time; as no try fails twice, every call succeeds. */
const fault = (text: string, before: number): Fault => {
  const kind = chance("fault", text)
  if (before > 0 || kind > 0.06)
    return { kind: "slow", milliseconds: Math.floor(chance("time", text, before) ** 3 * 20) }
  if (kind < 0.02) return { kind: "status", status: 429, headers: { "retry-after": "0.001" } }
  if (kind < 0.03) return { kind: "status", status: 529, body: '{"type":"error","error":{"type":"overloaded_error"}}' }
  return kind < 0.045 ? { kind: "garbled" } : { kind: "dropped" }
}

/** The answers of a server with both models, by the names that the example gives them. */
export const mailModels: Options = {
  say: (body, before) => (body.model.startsWith("claude") ? reflecting(body) : sorter(body, before)),
  fault,
}

/**
 * Contains the files that `effect init` writes. Each of them runs unchanged and without an API key; comments say what to
 * change.
 */

/** Lists the values that `--kind` accepts. */
export const kinds = ["experiment", "questions", "evaluation", "training", "program"] as const
export type ProjectKind = (typeof kinds)[number]

export interface InitFile {
  /** The default name of the file. */
  readonly file: string
  /** The description of the file in the help, and in the message after it is written. */
  readonly about: string
  /** The subcommand that runs the file. */
  readonly command: "run" | "eval"
  /** The JSON Schema in `schemas/` with which editors complete and check the file; null if the file has none. */
  readonly schema: string | null
  readonly text: string
}

/** The settings of a model, as text in an agent's section of a file. */
const models = `  lm_config:
    # Built in, so that this runs anywhere: it has no knowledge, and answers from its prompt.
    model: scripted:reader
    # Real models are named like this; their keys are read from the environment:
    # model: gpt-4.1-mini                      # OPENAI_API_KEY
    # model: claude-sonnet-4-5                 # ANTHROPIC_API_KEY
    # model: gemini-2.5-flash                  # GOOGLE_API_KEY
    # model: vllm:Qwen/Qwen3-8B                # vLLM at http://127.0.0.1:8000/v1, or at base_url
    # model: llama3.2                          # Ollama, with the next line
    # base_url: http://127.0.0.1:11434/v1
    temperature: 0.2
    max_output_tokens: 512
    # record saves every answer, and replay answers from what was saved, so the run can be repeated to the bit.
    cache: off
    # Write every call to a file under llm_calls/ of the run.
    log_calls: false
    # limits: { concurrency: 8, requests_per_minute: 300 }
    # budget: { calls: 5000 }                  # the run stops cleanly there, and can be resumed`

const experiment: InitFile = {
  file: "experiment.yaml",
  about: "an agent with a memory that learns from feedback",
  command: "run",
  schema: "experiment.schema.json",
  text: `# An experiment: an agent asks a language model, learns from feedback into its memory, and is validated on other tasks.
#   npx effect run FILE_NAME

seed: 0

# Words in a secret code. The first answer can only be guessed; feedback tells the right one, which helps if the agent
# remembers it.
train_dataset:
  type: codebook
  num_tasks: 60
  words: 12
  seed: 1
# The same code, with the questions in another order.
validation_dataset:
  type: codebook
  num_tasks: 40
  words: 12
  seed: 2
# For your own questions, one line of JSON each: {"question": "2 + 2?", "answer": 4}
# train_dataset:
#   type: qa
#   dataset_path: data/train.jsonl             # relative to this file's folder; .csv works too
#   task_type: numeric                         # exact, f1, numeric or mcq

agent:
  # memoryless_agent remembers nothing, history_agent remembers what happened, and reflexion_agent also what it learnt from
  # that; tool_agent and react_agent can call tools before they act.
  type: reflexion_agent
${models}
  # system_prompt: "{file:prompts/system.md}"  # a text, or the text of a file
  memory_config:
    _type: reflections
    max_length: 200
  # How many of the last entries of the memory go into a prompt; null: all.
  history_k: null
  max_reflections_in_prompt: 10

runtime:
  max_envs_to_visit: null                      # null: all of train_dataset
  max_steps_per_episode: 50
  validation_freq: 20                          # validate after this many training episodes
  validation_num_workers: 8                    # validation episodes at the same time
  run_validation_at_start: true
  checkpoint_every_episodes: 20
  checkpoint_strategy: last_n                  # or top_k_val: keep the best by validation
  checkpoint_keep_last: 5                      # 0: all

output:
  # Runs are saved in {results_dir}/{YYYYMMDD_HHMMSS}; null: in results/, where effect runs and effect ui look.
  results_dir: null
  save_memory_every: 20
  # Save every call with its tokens, as training data.
  save_rollouts: false
`,
}

const questions: InitFile = {
  file: "questions.yaml",
  about: "an agent on your own questions",
  command: "run",
  schema: "experiment.schema.json",
  text: `# Your own questions, asked one after another. The agent is told the right answers, and remembers them.
#   npx effect run FILE_NAME

seed: 0

train_dataset:
  type: qa
  # The questions are here, or in a file: write dataset_path: data/train.jsonl (or .csv) instead of items.
  items:
    - { id: planets, question: "How many planets has the sun?", answer: 8 }
    - { id: legs, question: "How many legs has a spider?", answer: 8 }
    - { id: strings, question: "How many strings has a violin?", answer: 4 }
    - { id: again, question: "How many legs has a spider?", answer: 8 }
  # The names of their keys.
  input_field: question
  target_field: answer
  id_field: id
  # How answers are compared. exact: as text, without regard to case and spaces; f1: by common words; numeric: by the
  # number in the answer; mcq: by the letter or text of one of the choices, which are in choices_field.
  task_type: numeric
  # instruction_template: "Answer only with a number.\\n\\n{question}"
  # shuffle: true
# These are questions of the training, which the built-in model finds again. A real validation asks others.
validation_dataset:
  type: qa
  items:
    - { question: "How many strings has a violin?", answer: 4 }
    - { question: "How many legs has a spider?", answer: 8 }
  task_type: numeric

agent:
  type: history_agent
${models}
  # Where the answer is in the text: whole, boxed, { tag: answer } or { json: answer }; of a list, the first that fits.
  parser: whole
  memory_config:
    _type: history_list                        # or bm25 or embeddings: the entries most like the question
    max_length: 100

runtime:
  validation_freq: 4

output:
  results_dir: null
`,
}

/** The settings of a model, indented for a section below the settings of an agent. */
const modelsBelow = models.replace(/^/gm, "  ")

const evaluation: InitFile = {
  file: "evaluation.yaml",
  about: "agents compared on the same tasks",
  command: "eval",
  schema: "evaluation.schema.json",
  text: `# An evaluation: agents play the same tasks, are scored, and are compared. They learn nothing.
#   npx effect eval FILE_NAME

seed: 0

dataset:
  type: qa
  # The tasks are here, or in a file: write dataset_path: data/tasks.jsonl (or .csv) instead of items.
  items:
    - { id: france, question: "What is the capital of France?", answer: Paris, continent: Europe }
    - { id: italy, question: "What is the capital of Italy?", answer: Rome, continent: Europe }
    - { id: spain, question: "What is the capital of Spain?", answer: Madrid, continent: Europe }
    - { id: japan, question: "What is the capital of Japan?", answer: Tokyo, continent: Asia }
    - { id: china, question: "What is the capital of China?", answer: Beijing, continent: Asia }
    - { id: india, question: "What is the capital of India?", answer: New Delhi, continent: Asia }
  id_field: id
  meta_fields: [continent]

# Each agent has a name; the later ones are compared with the first. For a single agent write agent instead.
agents:
  guesses:
    type: memoryless_agent
    # Built in: answers with one of these words at random.
    lm_config: { model: "builtin:choice:Paris,Rome,Madrid,Tokyo", temperature: 1 }
  was_told:
    type: memoryless_agent
    system_prompt: "RULE: [What is the capital of France?] -> Paris; RULE: [What is the capital of Japan?] -> Tokyo"
${modelsBelow}

# pass@k, the means by key and the comparisons use the first scorer. There are also score (the task's own), f1, contains,
# steps, calls and latency, and some with settings:
#   - { type: solved, threshold: 0.5 }
#   - { type: judge, rubric: Is it polite?, lm_config: { model: gpt-4.1-mini } }
scorers: [exact, tokens]
repeats: 4                                     # how often each task is played
pass_at: [1, 4]                                # the k of pass@k; null: the repeats
by: [continent]                                # also a mean for each value of this key of the tasks
workers: null                                  # episodes at a time; null: as many as there are cores
max_steps_per_episode: null                    # null: the limit of each task
compare_to: null                               # the folder of a finished evaluation of the same tasks

output:
  # Runs are saved in {results_dir}/{YYYYMMDD_HHMMSS}; null: in results/, where effect runs and effect ui look.
  results_dir: null
`,
}

const training: InitFile = {
  file: "training.yaml",
  about: "reinforcement learning in an env",
  command: "run",
  schema: "config.schema.json",
  text: `# A training: reinforcement learning in an env. All settings are in docs/settings.md
#   npx effect run FILE_NAME

seed: 1
env: CartPole-v1
num_envs: 8
total_steps: 50000

algorithm:
  name: ppo
  learning_rate: 0.001
  nsteps: 64

validation:
  every_steps: 10000
  episodes: 20

checkpoint:
  every_steps: 10000
`,
}

const program: InitFile = {
  file: "training.ts",
  about: "reinforcement learning in an env, as a program",
  command: "run",
  schema: null,
  text: `// A training as a program: each part of it can be your own.
//   npx effect run FILE_NAME
import { CartPole, Ppo, Train } from "effect-rl"

export default Train.run({
  env: CartPole.env,
  numEnvs: 8,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64 }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 20 },
  seed: 1,
})
`,
}

export const files: Readonly<Record<ProjectKind, InitFile>> = { experiment, questions, evaluation, training, program }

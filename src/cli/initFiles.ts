/** The files that `effect init` writes. Each runs as it is, without any key; comments say how it goes on from there. */

/** By the names that `--kind` takes. */
export const kinds = ["experiment", "questions", "evaluation", "training", "program"] as const
export type Kind = (typeof kinds)[number]

interface InitFile {
  /** What it is called unless somebody says. */
  readonly file: string
  readonly about: string
  /** What of the command it is for. */
  readonly command: "run" | "eval"
  /** By which editors complete it, in `schemas/`. */
  readonly schema: string | null
  readonly text: string
}

const models = `  lm_config:
    # Built in, so that this runs anywhere: it knows nothing by itself, and uses what its prompt holds.
    model: scripted:reader
    # Others, by their names; keys come from the environment:
    # model: gpt-4.1-mini                      # OPENAI_API_KEY
    # model: claude-sonnet-4-5                 # ANTHROPIC_API_KEY
    # model: gemini-2.5-flash                  # GOOGLE_API_KEY
    # model: vllm:Qwen/Qwen3-8B                # vLLM at http://127.0.0.1:8000/v1, or with base_url elsewhere
    # model: llama3.2                          # Ollama, with the next line
    # base_url: http://127.0.0.1:11434/v1
    temperature: 0.2
    max_output_tokens: 512
    # Asked once, answered from files ever after, so that a run can be repeated to the bit: record, replay or off.
    cache: off
    # Every call as a file below llm_calls/ of the run.
    log_calls: false
    # limits: { concurrency: 8, requests_per_minute: 300 }
    # budget: { calls: 5000 }                  # the run stops cleanly there, and can be gone on with`

const experiment = `# An experiment: an agent asks a language model, learns from feedback into its memory, and is validated on other tasks.
#   npx effect run FILE_NAME

name: codebook
seed: 0

# Words in a secret code: nobody knows the first answer, the feedback tells it, and whoever remembers is right next time.
train_dataset:
  type: codebook
  num_tasks: 60
  words: 12
  seed: 1
# The same code, asked in another order.
validation_dataset:
  type: codebook
  num_tasks: 40
  words: 12
  seed: 2
# Questions of one's own, a line of JSON each: {"question": "2 + 2?", "answer": 4}
# train_dataset:
#   type: qa
#   dataset_path: data/train.jsonl             # from this file's folder; CSV, too
#   task_type: numeric                         # exact, f1, numeric or mcq

agent:
  # memoryless_agent remembers nothing, history_agent what happened, reflexion_agent also what it made of it;
  # tool_agent and react_agent ask more than once before they act.
  type: reflexion_agent
${models}
  # system_prompt: "{file:prompts/system.md}"  # a text, or a file's
  memory_config:
    _type: reflections
    max_length: 200
  # The last so many entries of the memory go into a prompt; null: all.
  history_k: null
  max_reflections_in_prompt: 10

runtime:
  max_envs_to_visit: null                      # null: all of train_dataset
  max_steps_per_episode: 50
  validation_freq: 20                          # every so many training episodes
  validation_num_workers: 8                    # at the same time
  run_validation_at_start: true
  checkpoint_every_episodes: 20
  checkpoint_strategy: last_n                  # or top_k_val: the best by validation
  checkpoint_keep_last: 5                      # 0: all

output:
  # Where runs go, as {results_dir}/{YYYYMMDD_HHMMSS}; null: results/, where effect runs and effect ui look.
  results_dir: null
  save_memory_every: 20
  # Every call with its tokens, to train on.
  save_rollouts: false
`

const questions = `# Questions of one's own, asked one after another; the agent sees which answers were right, and remembers them.
#   npx effect run FILE_NAME

name: questions
seed: 0

train_dataset:
  type: qa
  # Here, or in a file: dataset_path: data/train.jsonl (or .csv) instead of items.
  items:
    - { id: planets, question: "How many planets has the sun?", answer: 8 }
    - { id: legs, question: "How many legs has a spider?", answer: 8 }
    - { id: strings, question: "How many strings has a violin?", answer: 4 }
    - { id: again, question: "How many legs has a spider?", answer: 8 }
  # Their keys, where they have other names.
  input_field: question
  target_field: answer
  id_field: id
  # exact: the same text, letter case and spaces aside; f1: by common words; numeric: the number in the answer; mcq: the
  # letter or the text of one of the choices, which choices_field names.
  task_type: numeric
  # instruction_template: "Answer with a number alone.\\n\\n{question}"
  # shuffle: true
validation_dataset:
  type: qa
  items:
    - { question: "How many strings has a violin?", answer: 4 }
    - { question: "How many legs has a spider?", answer: 8 }
  task_type: numeric

agent:
  type: history_agent
${models}
  # How the answer is found: whole, boxed, { tag: answer } or { json: answer }, or the first of several that fits.
  parser: whole
  memory_config:
    _type: history_list                        # or bm25, embeddings: what is like the question, wherever it was
    max_length: 100

runtime:
  validation_freq: 4

output:
  results_dir: null
`

/** As one of several agents. */
const modelsBelow = models.replace(/^/gm, "  ")

const evaluation = `# An evaluation: agents that learn nothing are played on the same tasks, scored, and compared.
#   npx effect eval FILE_NAME

name: capitals
seed: 0

dataset:
  type: qa
  # Here, or in a file: dataset_path: data/tasks.jsonl (or .csv) instead of items.
  items:
    - { id: france, question: "What is the capital of France?", answer: Paris, continent: Europe }
    - { id: italy, question: "What is the capital of Italy?", answer: Rome, continent: Europe }
    - { id: spain, question: "What is the capital of Spain?", answer: Madrid, continent: Europe }
    - { id: japan, question: "What is the capital of Japan?", answer: Tokyo, continent: Asia }
    - { id: china, question: "What is the capital of China?", answer: Beijing, continent: Asia }
    - { id: india, question: "What is the capital of India?", answer: New Delhi, continent: Asia }
  id_field: id
  meta_fields: [continent]

# By their names; the later ones are compared with the first. For one alone: agent instead.
agents:
  guesses:
    type: memoryless_agent
    # Built in: one of these words, by chance.
    lm_config: { model: "builtin:choice:Paris,Rome,Madrid,Tokyo", temperature: 1 }
  was_told:
    type: memoryless_agent
    system_prompt: "RULE: [What is the capital of France?] -> Paris; RULE: [What is the capital of Japan?] -> Tokyo"
${modelsBelow}

# The first one is what the parts, several tries and comparisons are about. Also score (the task's own), f1, contains,
# steps, calls, latency, and with more to say:
#   - { type: solved, threshold: 0.5 }
#   - { type: judge, rubric: Is it polite?, lm_config: { model: gpt-4.1-mini } }
scorers: [exact, tokens]
repeats: 4                                     # of each task
pass_at: [1, 4]                                # pass@k; null: the repeats
by: [continent]                                # a mean for each value of this key of the tasks
workers: null                                  # episodes at a time; null: as many as there are cores
max_steps_per_episode: null                    # null: as the tasks say
compare_to: null                               # the folder of a finished evaluation of the same tasks

output:
  # Where runs go, as {results_dir}/{YYYYMMDD_HHMMSS}; null: results/, where effect runs and effect ui look.
  results_dir: null
`

const training = `# A training: reinforcement learning in an env, with every setting by its name. All of them: docs/settings.md
#   npx effect run FILE_NAME

name: cartpole
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
`

const program = `// A training, as a program: what it is made of can be one's own.
//   npx effect run FILE_NAME
import { CartPole, Ppo, Train } from "effect-rl"

export default Train.run({
  name: "cartpole",
  env: CartPole.env,
  numEnvs: 8,
  algorithm: Ppo.make({ learningRate: 1e-3, nsteps: 64 }),
  totalSteps: 50_000,
  validation: { everySteps: 10_000, episodes: 20 },
  seed: 1,
})
`

export const files: Readonly<Record<Kind, InitFile>> = {
  experiment: {
    file: "experiment.yaml",
    about: "an agent with a memory that learns from feedback",
    command: "run",
    schema: "experiment.schema.json",
    text: experiment,
  },
  questions: {
    file: "questions.yaml",
    about: "an agent on questions of one's own",
    command: "run",
    schema: "experiment.schema.json",
    text: questions,
  },
  evaluation: {
    file: "evaluation.yaml",
    about: "agents compared on the same tasks",
    command: "eval",
    schema: "evaluation.schema.json",
    text: evaluation,
  },
  training: {
    file: "training.yaml",
    about: "reinforcement learning in an env",
    command: "run",
    schema: "config.schema.json",
    text: training,
  },
  program: {
    file: "training.ts",
    about: "reinforcement learning in an env, as a program",
    command: "run",
    schema: null,
    text: program,
  },
}

/**
 * Lists the keys of prime-rl's `orch.toml`, in the forms that it had from 2025 to 2026, with what each of them means here.
 * `primeRl.ts` reads such files by this table.
 */

/** The meaning of a key of prime-rl. A key without a rule of its own has that of the section around it. */
export type KeyRule =
  /** The key means the same as a key of ours, whose path this is. */
  | { readonly means: string }
  /** The key is left out: in a trainer of ours it is no setting of a run, or it changes no result. */
  | { readonly ignored: string }
  /** The key would change what is learned, and has no equal here, unless its value is one of `unless`. */
  | { readonly refused: string; readonly unless?: ReadonlyArray<unknown> }

const means = (path: string): KeyRule => ({ means: path })
const ignored = (reason: string): KeyRule => ({ ignored: reason })
const refused = (instead: string, unless?: ReadonlyArray<unknown>): KeyRule => ({
  refused: instead,
  ...(unless === undefined ? {} : { unless }),
})

const ofTrainer = "the config of the trainer decides that"
const ofMachine = "it changes no result; the trainer plays as many episodes at once as a step has"
const ofLog = "every run has its own log, curves and scores in its folder; effect push sends them to W&B or MLflow"
const ofServer = "the trainer generates by itself; effect orchestrate --server URL uses a server"
const ofFilters = 'write batch = { even_groups = "drop", filters = ["complete"] } instead, where these help'
const ofTasks = "its tasks are Python packages; write a section [train_dataset] instead"
const ofValidation = "write a section [validation_dataset] instead, which is played once, greedily"

/** The reason to refuse a section of the file that holds the configs of all its programs. */
export const ofWhole = "this is prime-rl's rl.toml; write the keys of [orchestrator] into a file orch.toml"

/** The keys by their paths. */
export const primeRlKeys: Readonly<Record<string, KeyRule>> = {
  // The batch.
  batch_size: means("batch.size"),
  token_batch_size: refused("write batch_size instead: a step has a number of samples"),
  group_size: means("batch.group_size"),
  rollouts_per_example: means("batch.group_size"),
  oversampling_factor: ignored(ofMachine),
  max_inflight_episodes: ignored(ofMachine),
  max_concurrent: ignored(ofMachine),
  concurrency: ignored(ofMachine),
  tasks_per_minute: ignored(ofMachine),
  "train.filter_zero_advantages": means("batch.even_groups"),
  max_steps: means("max_steps"),
  max_async_level: means("max_async_level"),
  max_off_policy_steps: means("max_async_level"),
  strict_async_level: refused("samples may also come from newer weights than max_async_level demands; leave it out", [
    false,
  ]),
  seed: means("seed"),
  bench: refused("write max_steps = 5 instead", [false]),

  // The model and its updates.
  "model.name": means("model.path"),
  "model.lora.rank": means("lora.rank"),
  "model.lora.alpha": means("lora.alpha"),
  "model.lora.name": ignored("an adapter has the name of its run"),
  "model.trust_remote_code": refused("no code of a model is run; leave it out", [false]),
  "model.vlm": refused("models read only texts; leave it out"),
  "model.client": ignored(ofServer),
  client: ignored(ofServer),
  lora_name: ignored("an adapter has the name of its run"),
  tokenizer: ignored("the folder of the model has its tokenizer and its chat template"),
  renderer: ignored("the folder of the model has its tokenizer and its chat template"),
  seq_len: means("trainer.width"),
  mask_env_responses: refused("only the model's own tokens are trained; leave it out", [true]),
  // Each turn is a sample whose prompt has the turns before it, so the same tokens are trained in the same contexts by either.
  trajectory_strategy: refused("each turn of an episode is a sample; leave it out", ["interleaved", "branching"]),
  "optim.lr": means("optimiser.lr"),
  optim: refused("write a section [optimiser] instead"),

  // The algorithm.
  "algo.type": means("objective.type"),
  "algo.length_penalty": refused("no penalty for lengths is built in; leave it out"),
  "algo.sampling.source": refused("the answers come from the trained model; leave it out", ["policy"]),
  "algo.teacher": refused("write a section [teacher] instead"),
  algo: refused("write a section [objective] instead"),
  "advantage.length_weighted_mean": refused("write objective = { type = … } with another normalisation instead", [
    false,
  ]),
  advantage: refused("write a section [objective] instead"),
  pre_batch_filters: refused(
    "write batch = { replaced_groups = N } instead, with the most groups that a step replaces",
  ),
  post_batch_filters: refused(ofFilters),
  "buffer.seed": ignored("the seed of the run also orders its tasks"),
  "buffer.online_difficulty_filtering": refused("write batch = { replaced_groups = N } instead", [false]),
  buffer: refused("write batch = { replaced_groups = N } instead, with the most groups that a step replaces"),

  // How tokens are drawn.
  "train.sampling.temperature": means("sampling.temperature"),
  "train.sampling.max_completion_tokens": means("sampling.max_tokens"),
  "sampling.temperature": means("sampling.temperature"),
  "sampling.max_tokens": means("sampling.max_tokens"),
  ...Object.fromEntries(
    ["train.sampling", "sampling"].flatMap((section): ReadonlyArray<readonly [string, KeyRule]> => [
      [`${section}.repetition_penalty`, refused("no penalties are drawn with; leave it out", [1])],
      [`${section}.min_tokens`, refused("an answer may have any length; leave it out", [0])],
      [`${section}.seed`, ignored("the seed of the run also chooses the tokens")],
      [`${section}.extra_body.top_k`, means("sampling.top_k")],
      [`${section}.extra_body.top_p`, means("sampling.top_p")],
      [`${section}.extra_body.min_p`, means("sampling.min_p")],
      [`${section}.extra_body.return_token_ids`, ignored("tokens are always recorded")],
      [`${section}.extra_body`, refused("a section [sampling] has all settings; leave it out")],
    ]),
  ),

  // Tasks, and how they are validated.
  env: refused(ofTasks),
  "train.source": refused(ofTasks),
  "eval.interval": means("validation.every"),
  "eval.skip_first_step": refused("the first validation is always before step 0; leave it out", [false]),
  "eval.eval_base_model": refused("the first validation is always before step 0; leave it out", [true]),
  "eval.retrigger_on_resume": refused("a validation is played once; leave it out", [false]),
  "eval.retry": ignored("max_failures says how many episodes may fail"),
  "eval.save": ignored(ofLog),
  eval: refused(ofValidation),
  "val.interval": means("validation.every"),
  val: refused(ofValidation),

  // The next keys say which checkpoints and weights are saved.
  "ckpt.interval": means("checkpoint.every"),
  "ckpt.keep": means("checkpoint.keep"),
  "ckpt.keep_last": means("checkpoint.keep"),
  "ckpt.keep_interval": refused("write weights = { every = N } instead, which keeps the weights of every N steps"),
  "ckpt.resume_step": means("resume_step"),
  "ckpt.wait_for_weights_timeout": ignored("an orchestrator waits until the weights are there"),
  "ckpt.skip_progress": refused("a run always goes on with its progress; leave it out", [false]),
  "ckpt.skip_buffer": ignored("the tasks of a step depend only on the seed"),
  "resume.step": means("resume_step"),
  resume: refused("write resume_step instead, or copy the checkpoint into the folder of the run"),
  output_dir: ignored("effect run --results-dir DIR chooses the folder"),

  // How it runs and what it logs.
  num_train_workers: ignored(ofTrainer),
  pad_to_multiple_of: ignored(ofTrainer),
  weight_broadcast: ignored(ofTrainer),
  rollout_transport: ignored(ofTrainer),
  env_server_base_port: ignored("no servers of envs are started"),
  env_vars: ignored("set them where the command is started"),
  collect_inference_metrics: ignored(ofLog),
  inference_metrics_roles: ignored(ofLog),
  log: ignored(ofLog),
  wandb: ignored(ofLog),
  monitors: ignored(ofLog),
  prime_monitor: ignored(ofLog),
  file_monitor: ignored(ofLog),
  heartbeat: ignored(ofLog),

  // The sections of its `rl.toml`.
  orchestrator: refused(ofWhole),
  trainer: refused(ofWhole),
  "trainer.enable_router_replay": means("trainer.enable_router_replay"),
  inference: refused(ofWhole),
  "inference.vllm.enable_return_routed_experts": ignored("the engine records experts if the trainer replays them"),
}

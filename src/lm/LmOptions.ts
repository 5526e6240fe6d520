// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `LmConfig.make`. */
export interface LmOptions {
  /**
   * The name of the model, which determines the provider: gpt-…, o1 …, gemini…, claude…, or a name after vllm:,
   * toka:, scripted: or builtin:.
   */
  readonly model: string
  /**
   * The sampling temperature: 0 always takes the likeliest token, 1 samples from the model's own distribution.
   * @default 0.2
   */
  readonly temperature?: number
  /**
   * The number of tokens after which an answer is cut off; by default, agents do not act upon such an answer.
   * @default 2048
   */
  readonly maxOutputTokens?: number
  /**
   * Writes every call as a file below `llm_calls/`.
   * @default false
   */
  readonly logCalls?: boolean
  /**
   * The number of times that a call is tried again after a temporary failure.
   * @default 5
   */
  readonly maxRetries?: number
  /**
   * The delay before the first retry, in seconds.
   * @default 1
   */
  readonly startingDelay?: number
  /**
   * The factor by which the delay grows from one retry to the next.
   * @default 2
   */
  readonly backoffFactor?: number
  /**
   * The longest delay before a retry, in seconds. Only if the server requires it, a delay is longer: up to a
   * minute.
   * @default 10
   */
  readonly maxDelay?: number
  /**
   * The address of the server; null takes the default address of the model's provider.
   * @default null
   */
  readonly baseUrl?: string | null
  /**
   * The protocol of the server; null chooses it by the model's name.
   * @default null
   */
  readonly protocol?: "openai" | "anthropic" | null
  /**
   * The API key. It is better kept in the environment: `${NAME}` takes the value of that variable.
   * @default null
   */
  readonly apiKey?: string | null
  /**
   * The time limit of one attempt, in seconds.
   * @default 900
   */
  readonly timeoutS?: number
  /**
   * The size limit of a server's answer, in megabytes; a longer answer is refused before it fills the memory.
   * @default 64
   */
  readonly maxAnswerMb?: number
  /**
   * Texts at which the model stops its answer.
   * @default []
   */
  readonly stopSequences?: ReadonlyArray<string> | null
  /**
   * The number of tokens that the model may use to think before it answers, if it can think; null uses the
   * server's default.
   * @default null
   */
  readonly thinkingBudget?: number | null
  /**
   * Has no effect: models are always called over HTTP. The key is accepted so that files that have it stay valid.
   * @default null
   */
  readonly useServer?: boolean | null
  /**
   * Whether answers are cached: `record` calls the model once and then answers from files, `replay` answers from
   * files only, `off` always calls the model.
   * @default "off"
   */
  readonly cache?: "record" | "replay" | "off"
  /**
   * The folder of the cached answers.
   * @default "lm_cache"
   */
  readonly cacheDir?: string
  /**
   * Limits on the calls at the same time, and on requests and tokens per minute.
   */
  readonly limits?: {
    /**
     * The largest number of calls that run at the same time; null sets no limit.
     * @default null
     */
    readonly concurrency?: number | null
    /**
     * The largest number of requests per minute, including retries; null sets no limit.
     * @default null
     */
    readonly requestsPerMinute?: number | null
    /**
     * The largest number of tokens per minute, of prompts and answers together; null sets no limit.
     * @default null
     */
    readonly tokensPerMinute?: number | null
  }
  /**
   * Limits on what a run may spend before it stops.
   * @default {"tokens":null,"calls":null,"money":null}
   */
  readonly budget?: {
    /**
     * The largest number of tokens that a run may use, of prompts and answers together; null sets no limit.
     * @default null
     */
    readonly tokens?: number | null
    /**
     * The largest number of requests to a server, including retries but not answers from the cache; null sets no
     * limit.
     * @default null
     */
    readonly calls?: number | null
    /**
     * The largest amount of money that a run may spend, in the currency of `prices`; null sets no limit.
     * @default null
     */
    readonly money?: number | null
  }
  /**
   * The prices of tokens, for a budget of money.
   * @default []
   */
  readonly prices?: ReadonlyArray<{
    /**
     * The name of a model, or the beginning of its name.
     */
    readonly model: string
    /**
     * The price of a million tokens of prompts.
     */
    readonly input: number
    /**
     * The price of a million tokens of answers.
     */
    readonly output: number
  }>
  /**
   * The share of each delay that is random, so that many clients do not all retry at the same time.
   * @default 0.25
   */
  readonly jitter?: number
}

/** Completion scripts for bash, zsh and fish, generated from the commands, options and choices of a program. */
import type { Argument, Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Word = { readonly word: string; readonly description: string };
type WordOption = Word & {
  readonly takesValue: boolean;
  readonly isFile: boolean;
  readonly choices: readonly string[];
};
/** What an argument takes: words that are known, or those that a command of the program prints. */
type Place = { readonly choices: readonly string[]; readonly offeredBy: string | undefined };
/** What may follow the words of `path`, for example of `ops gate record`. */
type Position = {
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly WordOption[];
  /** The arguments, in order. */
  readonly places: readonly Place[];
};

/**
 * @param name the word that the user types. The script defines a function of this name if there is no such command.
 * @param offered the command that prints the words of an argument, one a line. The script runs it at each completion.
 */
export function completionScript(
  shell: (typeof SHELLS)[number],
  name: string,
  program: Command,
  offered: ReadonlyMap<Argument, string>,
): string {
  const positions = listPositions(program, name, offered);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](name, positions);
}

function listPositions(command: Command, path: string, offered: ReadonlyMap<Argument, string>): Position[] {
  const own: Position = {
    path,
    commands: command.commands.map((child) => ({ word: child.name(), description: child.description() })),
    options: command.createHelp().visibleOptions(command).map(optionOf),
    places: command.registeredArguments.map((argument) => ({
      choices: argument.argChoices ?? [],
      offeredBy: offered.get(argument),
    })),
  };
  return [own, ...command.commands.flatMap((child) => listPositions(child, `${path} ${child.name()}`, offered))];
}

const optionOf = ({ long, flags, description, required, argChoices }: Option): WordOption => ({
  word: long ?? flags,
  description,
  takesValue: required,
  isFile: flags.endsWith('<file>'),
  choices: argChoices ?? [],
});

/** A text in the single quotes of bash, zsh and fish. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The patterns of all commands below the root, such as `'ops gate' 'ops gate list'`. */
const commandPatterns = (positions: readonly Position[]): string[] =>
  positions.slice(1).map(({ path }) => quoted(path));

/** All options that take a value, each once. */
const valueOptions = (positions: readonly Position[]): string[] => {
  const options = positions.flatMap((position) => position.options).filter(({ takesValue }) => takesValue);
  return [...new Set(options.map(({ word }) => word))];
};

/** The pattern of these options after any command, in bash and zsh. */
const valuePattern = (positions: readonly Position[]): string =>
  valueOptions(positions)
    .map((word) => `*${quoted(` ${word}`)}`)
    .join(' | ');

const definition = (name: string): string =>
  `type ${name} >/dev/null 2>&1 || ${name}() { npm run --silent ${name} -- "$@"; }`;

/** Bash and zsh share the loop over the words before the cursor: it finds the command and counts its arguments. */
const loop = (positions: readonly Position[], words: string, range: string): string =>
  `  for ((${range}; index++)); do
    next=\${${words}[index]}
    case "$command_path $next" in
      ${commandPatterns(positions).join(' | ')}) command_path="$command_path $next" ;;
      ${valuePattern(positions)}) index=$((index + 1)) ;;
      *' --'*) ;;
      *) place=$((place + 1)) ;;
    esac
  done`;

/** The words that a command of the program prints now; none when it fails. */
const printedBy = (name: string, command: string): string => `${name} ${command} 2>/dev/null`;

/** The arms of the `case` that collects candidates. `values` are those of options, `places` those of arguments. */
function armsOf(name: string, positions: readonly Position[], wordOf: (word: Word) => string) {
  const arm = (pattern: string, words: readonly string[]): string[] =>
    words.length > 0 ? [`${quoted(pattern)}) candidates+=(${words.map(quoted).join(' ')}) ;;`] : [];
  const join = (arms: readonly string[]): string => arms.join('\n      ');
  const choicesOf = ({ path, options }: Position) =>
    options.flatMap(({ word, choices }) => arm(`${path} ${word}`, choices));
  const placesOf = ({ path, places }: Position) =>
    places.flatMap(({ choices, offeredBy }, place) =>
      offeredBy === undefined
        ? arm(`${path} ${place}`, choices)
        : [`${quoted(`${path} ${place}`)}) candidates+=($(${printedBy(name, offeredBy)})) ;;`],
    );
  const wordsOf = ({ path, commands, options }: Position) => arm(path, [...commands, ...options].map(wordOf));
  return {
    values: join(positions.flatMap(choicesOf)),
    places: join(positions.flatMap(placesOf)),
    words: join(positions.flatMap(wordsOf)),
  };
}

/** Where the script offers nothing, bash completes file names. */
function bashScript(name: string, positions: readonly Position[]): string {
  const { values, places, words } = armsOf(name, positions, ({ word }) => word);
  return `${definition(name)}
_${name}() {
  local command_path=${name} place=0 index next candidates=()
${loop(positions, 'COMP_WORDS', 'index = 1; index < COMP_CWORD')}
  case "$command_path \${COMP_WORDS[COMP_CWORD - 1]}" in
      ${values}
      ${valuePattern(positions)}) ;;
      *)
    case "$command_path $place" in
      ${places}
    esac
    case "$command_path" in
      ${words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "\${candidates[*]}" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _${name} ${name}`;
}

function zshScript(name: string, positions: readonly Position[]): string {
  const { values, places, words } = armsOf(
    name,
    positions,
    ({ word, description }) => `${word}:${description.replaceAll(':', '\\:')}`,
  );
  const files = positions.flatMap(({ path, options }) =>
    options.filter(({ isFile }) => isFile).map(({ word }) => `${quoted(`${path} ${word}`)}) _files; return ;;`),
  );
  return `${definition(name)}
_${name}() {
  local command_path=${name} place=0 index next
  local -a candidates
${loop(positions, 'words', 'index = 2; index < CURRENT')}
  case "$command_path \${words[CURRENT - 1]}" in
      ${[...files, values].join('\n      ')}
      ${valuePattern(positions)}) return ;;
      *)
    case "$command_path $place" in
      ${places}
    esac
    case "$command_path" in
      ${words}
    esac ;;
  esac
  _describe ${name} candidates
}
compdef _${name} ${name}`;
}

function fishScript(name: string, positions: readonly Position[]): string {
  return `type -q ${name}; or function ${name}; npm run --silent ${name} -- $argv; end
function __${name}_reached
  set -l command_path ${name}
  set -l place 0
  set -l is_value no
  for next in (commandline -opc)[2..-1]
    if test $is_value = yes
      set is_value no
      continue
    end
    switch "$command_path $next"
      case ${commandPatterns(positions).join(' ')}
        set command_path "$command_path $next"
      case ${valueOptions(positions)
        .map((word) => quoted(`* ${word}`))
        .join(' ')}
        set is_value yes
      case '* --*'
      case '*'
        set place (math $place + 1)
    end
  end
  test "$command_path" = "$argv[1]"; or return 1
  test (count $argv) -eq 1; or test $place = $argv[2]
end
complete -c ${name} -f
${positions.flatMap((position) => fishLines(name, position)).join('\n')}`;
}

function fishLines(name: string, { path, commands, options, places }: Position): string[] {
  const complete = (condition: string, rest: string): string =>
    `complete -c ${name} -n ${quoted(`__${name}_reached ${condition}`)} ${rest}`;
  const valueSyntax = ({ takesValue, isFile, choices }: WordOption): string => {
    if (!takesValue) return '';
    if (isFile) return ' -r -F';
    return choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : ' -x';
  };
  return [
    ...commands.map(({ word, description }) => complete(`"${path}"`, `-a ${word} -d ${quoted(description)}`)),
    ...places.flatMap(({ choices, offeredBy }, place) => {
      const words = offeredBy === undefined ? choices.join(' ') : `(${printedBy(name, offeredBy)})`;
      return words === '' ? [] : [complete(`"${path}" ${place}`, `-a ${quoted(words)}`)];
    }),
    ...options.map((option) =>
      complete(`"${path}"`, `-l ${option.word.slice(2)}${valueSyntax(option)} -d ${quoted(option.description)}`),
    ),
  ];
}

import type { ComponentProps } from "react";

interface Props extends Omit<ComponentProps<"form">, "onSubmit"> {
  onSubmit: () => void;
}

/** A form that calls a function instead of loading another page. */
export function Form({ onSubmit, ...rest }: Props) {
  return (
    <form
      className="stack"
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    />
  );
}

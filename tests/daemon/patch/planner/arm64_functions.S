/* Functions of arm64 whose shapes are known: what the planner makes of each is in
 * arm64_planner_test.cc, and arm64_emulation_test.cc runs them. Their first instructions have each
 * form that reads the program counter. */
	.arch armv8.5-a
	.text

	.macro FUNCTION name
	.p2align 4
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	.endm
	.macro END name
	.cfi_endproc
	.size \name, . - \name
	.endm

FUNCTION plain_function
	add x0, x0, #1
	eor x1, x0, x2
	ret
END plain_function

FUNCTION first_is_adr
	adr x3, constants
	ldr x0, [x3]
	ret
END first_is_adr

FUNCTION first_is_adrp
	adrp x4, constants
	add x4, x4, :lo12:constants
	ret
END first_is_adrp

FUNCTION first_loads_x
	ldr x5, constants + 8
	ret
END first_loads_x

FUNCTION first_loads_w
	ldr w6, constants + 4
	ret
END first_loads_w

FUNCTION first_loads_signed
	ldrsw x7, constants + 12
	ret
END first_loads_signed

FUNCTION first_loads_s
	ldr s1, constants
	ret
END first_loads_s

FUNCTION first_loads_d
	ldr d2, constants + 8
	ret
END first_loads_d

FUNCTION first_loads_q
	ldr q3, constants
	ret
END first_loads_q

FUNCTION first_prefetches
	prfm pldl1keep, constants
	ret
END first_prefetches

FUNCTION first_jumps_out
	b plain_function
END first_jumps_out

FUNCTION first_jumps_inside
	b 1f
	nop
1:	mov x0, #7
	ret
END first_jumps_inside

FUNCTION first_calls
	bl plain_function
	brk #1
END first_calls

FUNCTION first_is_condition
	b.hi 1f
	mov x0, #1
	ret
1:	mov x0, #2
	ret
END first_is_condition

FUNCTION first_is_cbz
	cbz x0, 1f
	mov x0, #1
	ret
1:	mov x0, #2
	ret
END first_is_cbz

FUNCTION first_is_cbnz_of_w
	cbnz w1, 1f
	mov x0, #1
	ret
1:	mov x0, #2
	ret
END first_is_cbnz_of_w

FUNCTION first_is_tbz
	tbz x2, #37, 1f
	mov x0, #1
	ret
1:	mov x0, #2
	ret
END first_is_tbz

FUNCTION first_is_tbnz
	tbnz w3, #0, 1f
	mov x0, #1
	ret
1:	mov x0, #2
	ret
END first_is_tbnz

FUNCTION first_is_conditional_tail
	tbz x0, #1, plain_function
	mov x0, #1
	ret
END first_is_conditional_tail

FUNCTION conditional_tail
	add x0, x0, #4
	cbnz x0, plain_function
	ret
END conditional_tail

FUNCTION tail_call
	mov x1, #9
	b plain_function
END tail_call

FUNCTION pointer_tail
	ldr x16, [x0, #8]
	br x16
END pointer_tail

FUNCTION only_returns
	ret
END only_returns

FUNCTION lands
	bti c
	mov x0, #3
	ret
END lands

FUNCTION signs
	paciasp
	.cfi_negate_ra_state
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	bl plain_function
	ldp x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	retaa
END signs

FUNCTION chooses
	cmp w0, #3
	b.hi 2f
	adrp x1, table
	add x1, x1, :lo12:table
	ldrb w1, [x1, w0, uxtw]
	adr x2, 1f
	add x1, x2, w1, sxtb #2
	br x1
1:	mov x0, #10
	ret
	mov x0, #11
	ret
	mov x0, #12
	ret
2:	mov x0, #13
	ret
END chooses

FUNCTION table_to_entry
	add x0, x0, #1
	cmp w0, #1
	b.hi 1f
	adrp x1, back_table
	add x1, x1, :lo12:back_table
	ldrb w1, [x1, w0, uxtw]
	adr x2, 1f
	add x1, x2, w1, sxtb #2
	br x1
1:	ret
END table_to_entry

/* Its second part is entered by a table alone, and returns. */
FUNCTION chooses_elsewhere
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	cmp w0, #1
	b.hi 2f
	adrp x1, far_table
	add x1, x1, :lo12:far_table
	ldrsw x1, [x1, w0, uxtw #2]
	adr x2, 1f
	add x1, x2, x1
	br x1
1:	mov x0, #1
2:	add sp, sp, #16
	.cfi_def_cfa_offset 0
	ret
END chooses_elsewhere

	.p2align 2
	.type elsewhere, %function
elsewhere:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	mov x0, #2
	add sp, sp, #16
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size elsewhere, . - elsewhere

FUNCTION loops_to_entry
	subs w0, w0, #1
	b.ne loops_to_entry
	ret
END loops_to_entry

FUNCTION loops_behind_landing
	bti c
1:	subs w0, w0, #1
	b.ne 1b
	ret
END loops_behind_landing

FUNCTION returns_from_frame
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	add sp, sp, #16
	ret
END returns_from_frame

FUNCTION jumps_from_frame
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	b is_entered_inside + 4
END jumps_from_frame

FUNCTION is_entered_inside
	mov x0, #1
	ret
END is_entered_inside

FUNCTION unknown_jump
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	add x0, x0, x1, lsl #2
	br x0
END unknown_jump

FUNCTION first_calls_pointer
	blr x1
	brk #1
END first_calls_pointer

/* The table's address is on the stack, so no one finds it. */
FUNCTION keeps_table_on_stack
	sub sp, sp, #16
	.cfi_def_cfa_offset 16
	adrp x1, table
	add x1, x1, :lo12:table
	str x1, [sp]
	and x0, x0, #1
	ldr x1, [sp]
	ldrb w1, [x1, w0, uxtw]
	adr x2, 1f
	add x1, x2, w1, sxtb #2
	br x1
1:	add sp, sp, #16
	.cfi_remember_state
	.cfi_def_cfa_offset 0
	ret
	.cfi_restore_state
	add sp, sp, #16
	.cfi_def_cfa_offset 0
	ret
END keeps_table_on_stack

/* As linkers leave it that work around errata of the Cortex-A53. */
FUNCTION has_moved_instruction
	adrp x1, constants
	b moved_instruction
	add x0, x0, #1
	ret
END has_moved_instruction
moved_instruction:
	ldr x0, [x1, :lo12:constants]
	b has_moved_instruction + 8

FUNCTION runs_on
	mov x0, #1
END runs_on

FUNCTION has_constants
	ldr x0, 1f
	ret
	.p2align 3
1:	.quad 0x1122334455667788
END has_constants

FUNCTION is_not_code
	mov x0, #1
	.word 0x02000000
	ret
END is_not_code

	.p2align 4
constants:
	.quad 0x8182838485868788, 0x919293949596979f

	.section .rodata
table:
	.byte 0, 2, 4, 4
back_table:
	.byte 0, -9
	.p2align 2
far_table:
	.word 0
	.word elsewhere - chooses_elsewhere - 36

	.section .note.GNU-stack, "", %progbits

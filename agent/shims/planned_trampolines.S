/* Where the sleds of patch plans go: copied to the beginning of each module's region (formats/patch/
 * plan_layout.h), so everything here is relative to itself. A program that was not prepared may
 * expect anything of a register that its compiler knew to be free, so all of them are kept, and the
 * flags; vector registers are the handlers' business. The stack need not be aligned.
 */
#if defined(__x86_64__)

#define SPACING 128
#define WORDS (3 * SPACING)

	.section .rodata
	.globl collect_planned_begin
	.hidden collect_planned_begin
	.globl collect_planned_end
	.hidden collect_planned_end
	.p2align 7
collect_planned_begin:

/* r10d: the function's address. Block: rdi, rsi, rdx, rcx, r8, r9, rax, r11, rbx; above it the way
 * back into the sled, the program's r10, the way back to the function's caller. */
	.macro PLANNED index, first, second, third, fourth, fifth, sixth, seventh
	.org SPACING * \index
	pushq %rbx
	pushq %r11
	pushq %\seventh
	pushq %\sixth
	pushq %\fifth
	pushq %\fourth
	pushq %\third
	pushq %\second
	pushq %\first
	movq %rsp, %rbx
	/* The flags: al is 1 where the last result did not fit, ah has the others. rax is in the block. */
	lahf
	seto %al
	pushq %rax
	movl %r10d, %edi
	addq words(%rip), %rdi
	movq %rbx, %rsi
	movq %rbp, %rdx
	andq $-16, %rsp
	callq *(words + 8 + 8 * \index)(%rip)
	movq -8(%rbx), %rax
	movq %rbx, %rsp
	addb $0x7f, %al
	sahf
	popq %\first
	popq %\second
	popq %\third
	popq %\fourth
	popq %\fifth
	popq %\sixth
	popq %\seventh
	popq %r11
	popq %rbx
	retq
	.endm

	PLANNED 0, rdi, rsi, rdx, rcx, r8, r9, rax
	PLANNED 1, rax, rdx, rcx, rdi, rsi, r8, r9
	PLANNED 2, rdi, rsi, rdx, rcx, r8, r9, rax
	.org WORDS
/* The module's load bias and the three handlers: the agent's to fill in. */
words:
	.quad 0, 0, 0, 0
collect_planned_end:

#elif defined(__aarch64__)

#define SPACING 128
#define WORDS (3 * SPACING)

	.section .rodata
	.globl collect_planned_begin
	.hidden collect_planned_begin
	.globl collect_planned_end
	.hidden collect_planned_end
	.p2align 7
collect_planned_begin:

/* w17: the function's address; x30: back into the sled, which has put the function's own x30 and x17 on
 * the stack and takes them back. Block: as of collect_xray_enter (xray_trampolines.S), so handlers are the
 * same; behind x18 the flags. */
	.macro PLANNED index
	.org SPACING * \index
	stp x0, x1, [sp, #-160]!
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x8, x9, [sp, #64]
	stp x10, x11, [sp, #80]
	stp x12, x13, [sp, #96]
	stp x14, x15, [sp, #112]
	stp x16, x30, [sp, #128]
	mrs x16, nzcv
	stp x18, x16, [sp, #144]
	ldr x0, words
	add x0, x0, w17, uxtw
	mov x1, sp
	mov x2, x29
	ldr x16, words + 8 + 8 * \index
	blr x16
	ldp x18, x16, [sp, #144]
	msr nzcv, x16
	ldp x16, x30, [sp, #128]
	ldp x14, x15, [sp, #112]
	ldp x12, x13, [sp, #96]
	ldp x10, x11, [sp, #80]
	ldp x8, x9, [sp, #64]
	ldp x6, x7, [sp, #48]
	ldp x4, x5, [sp, #32]
	ldp x2, x3, [sp, #16]
	ldp x0, x1, [sp], #160
	ret
	.endm

	PLANNED 0
	PLANNED 1
	PLANNED 2
	.org WORDS
/* The module's load bias and the three handlers: the agent's to fill in. */
words:
	.quad 0, 0, 0, 0
collect_planned_end:

#endif

	.section .note.GNU-stack, "", %progbits
